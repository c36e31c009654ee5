# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For bats files: "load npm" gives what reads profiles and comes from npm's registry.

# npm_package NAME VERSION: sets PACKAGE to its directory; npm checks what it has fetched
npm_package() {
	local cache=${BUILD:-build}/npm name=${1##*/}
	PACKAGE=$(realpath -m "$cache/$name-$2")
	[ ! -d "$PACKAGE" ] || return 0
	command -v npm >/dev/null || skip "no npm"
	mkdir -p "$cache/$name.new"
	(cd "$cache/$name.new" && timeout 120 npm pack --silent "$1@$2" && tar -xzf ./*.tgz) >/dev/null 2>&1 ||
		skip "npm cannot fetch $1 $2: no network?"
	mv "$cache/$name.new/package" "$PACKAGE"
	rm -rf "$cache/$name.new"
}

# What speedscope shows of a file: canvases, then for each of two profiles its table of functions.
look_into_speedscope() { # look_into_speedscope FILE
	local browser
	browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
		skip "no chromium"
	cat >"$dir/look.js" <<-'EOF'
		const sleep = ms => new Promise(done => setTimeout(done, ms));
		const lines = () => Array.from(document.querySelectorAll('tr'), r =>
			Array.from(r.cells, c => c.textContent).join('|'));
		(async () => {
			const tab = () => Array.from(document.querySelectorAll('div')).reverse()
				.find(d => d.textContent.endsWith('Sandwich'));
			while (!tab()) await sleep(100);
			await sleep(500);
			const seen = [document.title + ': ' + document.querySelectorAll('canvas').length + ' canvases'];
			const title = () => (/Sandwich(.*?\))/.exec(document.body.textContent) || [])[1] || '';
			const shown = i => title().endsWith(`(${i + 1}/2)`) && lines().some(l => /%\)\|/.test(l));
			tab().click();
			for (let i = 0; i < 2; i++) {
				for (let t = 0; t < 1000 && !shown(i); t++) await sleep(100);
				await sleep(500);
				seen.push(title(), ...lines());
				window.dispatchEvent(new KeyboardEvent('keypress', {key: 'n'}));
			}
			document.documentElement.setAttribute('data-result', seen.join('\n'));
		})();
	EOF
	printf 'speedscope.loadFileFromBase64("%s", "%s")' "$(basename "$1")" "$(base64 -w 0 "$1")" >"$dir/load.js"
	sed -e "s|<head>|<head><base href=\"file://$PACKAGE/dist/release/\">|" \
		-e "s|</body>|<script src=\"file://$dir/look.js\"></script></body>|" \
		"$PACKAGE/dist/release/index.html" >"$dir/page.html"
	timeout 400 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--enable-unsafe-swiftshader --user-data-dir="$dir/chromium" --virtual-time-budget=300000 \
		--dump-dom "file://$dir/page.html#localProfilePath=$dir/load.js" >"$dir/dom" 2>/dev/null
	python3 -c 'if True:
		import html, re, sys
		print(html.unescape(re.search("data-result=\"([^\"]*)\"", open(sys.argv[1]).read())[1]))' "$dir/dom"
}
