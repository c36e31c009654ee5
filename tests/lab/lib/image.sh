# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Initial RAM file systems. An image is guest/NAME.image, a piece of bash that sets
#   packages=(...)   Debian packages that it takes programs from
#   programs=(...)   files out of them, with the libraries that they need
#   sources=(...)    C programs of guest/, compiled here with the flags of cflags_NAME
#   modules=(...)    modules of the kernel, to /modules
#   init=FILE        its first program (init)
#   load=FILE        what guest/init runs (NAME.load)
# and may have a function image_files ROOT for more.

guest=$top/tests/lab/guest

# copy_file FROM ROOT PATH: copies FROM/PATH to ROOT/PATH, and what it points to if it is a link
copy_file() {
	local from=$1 root=$2 path=$3 target
	while :; do
		mkdir -p "$root/${path%/*}"
		cp -P "$from/$path" "$root/$path"
		[[ -L $from/$path ]] || return 0
		target=$(readlink "$from/$path")
		[[ $target = /* ]] || target=${path%/*}/$target
		path=${target#/}
	done
}

# copy_program FROM ROOT PATH: also the interpreter and the libraries of it, from FROM
copy_program() {
	local from=$1 root=$2 path=$3
	[[ -e $from/$path || -L $from/$path ]] || die "no $path in the packages of this image"
	[[ ! -e $root/$path ]] || return 0
	copy_file "$from" "$root" "$path"
	copy_needed "$from" "$root" "$from/$path"
}

# copy_needed FROM ROOT ELF: the interpreter and the libraries of ELF, from FROM
copy_needed() {
	local from=$1 root=$2 lib dir
	while read -r lib; do
		for dir in lib64 lib "lib/$triplet" "usr/lib/$triplet"; do
			[[ -e $from/$dir/$lib ]] || continue
			copy_program "$from" "$root" "$dir/$lib"
			continue 2
		done
		die "$3 needs $lib, which none of the packages has"
	done < <(needed_files "$3")
}

# needed_files ELF: the names of the libraries and the interpreter that ELF asks for
needed_files() {
	readelf -ld "$1" 2>/dev/null |
		sed -n -e 's/.*(NEEDED).*\[\(.*\)\]/\1/p' \
			-e 's/.*program interpreter: .*\/\(.*\)\]/\1/p'
}

# compile_sources ROOT: the image's own C programs, to /srv/lab
compile_sources() {
	local root=$1 name compiler=${CC:-cc}
	[[ $arch = "$(dpkg --print-architecture)" ]] || compiler=$triplet-gcc
	mkdir -p "$root/srv/lab"
	for name in ${sources[@]+"${sources[@]}"}; do
		local -n flags=cflags_$name
		"$compiler" -O2 -g -o "$root/srv/lab/$name" "${flags[@]}"
	done
}

# fill_image ROOT KERNELDIR: what build_image has read of an image
fill_image() {
	local root=$1 kernel=$2 unpacked p
	unpacked=$cache/unpacked/$(printf '%s\n' "$arch" "${packages[@]}" | sha256sum | cut -c 1-16)
	unpack_packages "$unpacked" "${packages[@]}"
	mkdir -p "$root"/{bin,proc,sys,dev,tmp,run,etc,modules}
	for p in "${programs[@]}"; do
		copy_program "$unpacked" "$root" "$p"
	done
	compile_sources "$root"
	! declare -F image_files >/dev/null || image_files "$root" "$unpacked"
	for p in ${modules[@]+"${modules[@]}"}; do
		cp "$kernel/$p.ko" "$root/modules/"
	done
	install -m 755 "$guest/$init" "$root/init"
	[[ ! -e $guest/$load ]] || install -m 755 "$guest/$load" "$root/load"
}

# pack_image ROOT FILE: the same bytes for the same files, and not compressed: unpacking is what costs
# most under translation.
pack_image() {
	find "$1" -exec touch -h -d @0 {} +
	(cd "$1" && find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --reproducible --quiet) >"$2.new"
	mv "$2.new" "$2"
}

# build_image NAME KERNELDIR: prints the path of the image, built if it is not or if what it is made
# of has changed.
build_image() {
	local name=$1 kernel=$2 file root key init=init load=$1.load
	local packages=() programs=() sources=() modules=()
	[[ -r $guest/$name.image ]] || die "there is no image $name in tests/lab/guest"
	# shellcheck source=/dev/null
	. "$guest/$name.image"
	key=$( (echo "$kernel" && cat "$guest"/* "$top"/tests/lab/lib/*.sh "$kernel"/*.ko) | sha256sum | cut -c 1-16)
	file=$cache/images/$name-$arch-$key.cpio
	if [[ ! -s $file ]]; then
		mkdir -p "$cache/images"
		root=$(mktemp -d "$cache/images/$name.XXXXXX")
		chmod 755 "$root"
		fill_image "$root" "$kernel"
		rm -f "$cache/images/$name-$arch"-*.cpio
		pack_image "$root" "$file"
		rm -r "$root"
	fi
	unset -f image_files
	echo "$file"
}

# build_bare: prints the path of the guest that is no Linux
build_bare() {
	local file=$cache/images/bare
	mkdir -p "$cache/images"
	if [[ ! $file -nt $guest/bare.S ]]; then
		"${CC:-cc}" -m32 -nostdlib -static -no-pie -Wl,-Ttext=0x100000,--build-id=none -Wl,-m,elf_i386 \
			-o "$file" "$guest/bare.S"
	fi
	echo "$file"
}
