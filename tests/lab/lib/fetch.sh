# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Debian packages, downloaded and unpacked, never installed.

# use_arch ARCH: whose packages all that follows is about: amd64 or arm64. Another architecture than
# this machine's has package lists of its own in the cache, of which the machine's apt and dpkg know
# nothing.
use_arch() {
	arch=$1
	apt_options=(-qq -o APT::Sandbox::User=root)
	case $arch in
	amd64) triplet=x86_64-linux-gnu ;;
	arm64) triplet=aarch64-linux-gnu ;;
	*) die "no lab is made of $arch's packages" ;;
	esac
	[[ $arch = "$(dpkg --print-architecture)" ]] || use_own_lists "$cache/apt-$arch"
}

use_own_lists() { # use_own_lists STATE: reads them if they are not of these two days
	local state=$1
	apt_options+=(-o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State=$state"
		-o Dir::State::status=/dev/null -o "Dir::Cache=$state/cache")
	[[ -z $(find "$state/read" -mtime -2 2>/dev/null) ]] || return 0
	mkdir -p "$state/lists/partial" "$state/cache"
	apt-get "${apt_options[@]}" update >/dev/null 2>"$state/error" ||
		die "cannot read the package lists of $arch: $(tail -n 1 "$state/error")"
	touch "$state/read"
}
use_arch amd64

# fetch_debs PACKAGE...: prints the paths of the newest .deb of each, downloading those that are not
# there. Without package lists the newest ones in the cache will do.
fetch_debs() {
	local dir=$cache/debs known file package missing=()
	mkdir -p "$dir"
	known=$(apt-get "${apt_options[@]}" --print-uris download "$@" 2>/dev/null | awk '{ print $2 }') || :
	for file in $known; do
		[[ -s $dir/$file ]] || missing+=("${file%%_*}")
	done
	if ((${#missing[@]})); then
		(cd "$dir" && apt-get "${apt_options[@]}" download "${missing[@]}" >/dev/null 2>error) ||
			die "cannot download ${missing[*]}: $(tail -n 1 "$dir/error")"
	fi
	for package; do
		file=$(cd "$dir" && printf '%s\n' "$package"_*_"$arch".deb "$package"_*_all.deb | grep -v '\*' | sort -V | tail -n 1)
		[[ -s $dir/$file ]] || die "package $package is not known: run 'apt-get update' as root"
		echo "$dir/$file"
	done
}

# fetch_closure PACKAGE...: prints PACKAGEs and the libraries that they depend on, whatever is
# installed on this machine.
fetch_closure() {
	printf '%s\n' "$@"
	apt-get "${apt_options[@]}" -s -o Dir::State::status=/dev/null --no-install-recommends install "$@" |
		awk '/^Inst (lib|zlib1g )/ && $2 !~ /-perl$/ { print $2 }'
}

# unpack_packages DIR PACKAGE...: with everything that they depend on, if DIR is not there yet
unpack_packages() {
	local dir=$1 list deb
	shift
	[[ ! -d $dir ]] || return 0
	list=$(fetch_closure "$@" | sort -u)
	# shellcheck disable=SC2086 # words
	list=$(fetch_debs $list)
	rm -rf "$dir.new"
	mkdir -p "$dir.new"
	for deb in $list; do
		dpkg -x "$deb" "$dir.new"
	done
	mv "$dir.new" "$dir"
}

# kernel_package FLAVOUR: the newest kernel package of 6.1, 6.1-cloud, 6.12 or 6.12-cloud. The signed
# package is what people run; the unsigned one is the same kernel where there is no other.
kernel_package() {
	local series=${1%-cloud} infix='' names
	[[ $1 = *-cloud ]] && infix=cloud-
	names=$(apt-cache "${apt_options[@]}" search --names-only "^linux-image-${series//./\\.}\\.[0-9.]+[^ ]*-$arch(-unsigned)?\$" |
		awk '{ print $1 }' | grep -E -- "[0-9]-$infix$arch" | sed 's/-unsigned$//' | sort -Vu |
		tail -n 1)
	[[ -n $names ]] || die "no package of kernel $1 is known: run 'apt-get update' as root"
	apt-cache "${apt_options[@]}" show "$names" >/dev/null 2>&1 || names=$names-unsigned
	echo "$names"
}

# The modules that the images ask for; those that a kernel has built in are not there.
kernel_modules='af_alg algif_hash wp512 irqbypass kvm kvm-amd
	virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_console
	xen-privcmd xen-evtchn xen-gntdev xen-gntalloc xenfs'

# fetch_kernel FLAVOUR|VMLINUZ: prints the folder with vmlinuz and NAME.ko of this kernel.
fetch_kernel() {
	local package dir deb m
	case $1 in
	6.1 | 6.1-cloud | 6.12 | 6.12-cloud) ;;
	*) die "kernel $1 is none of 6.1, 6.1-cloud, 6.12, 6.12-cloud" ;;
	esac
	package=$(kernel_package "$1")
	dir=$cache/kernels/$package-$(cksum <<<"$kernel_modules" | cut -d ' ' -f 1)
	if [[ ! -s $dir/vmlinuz ]]; then
		deb=$(fetch_debs "$package")
		rm -rf "$dir"
		mkdir -p "$dir/unpacked"
		# tar complains of modules that are built in.
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir/unpacked" --wildcards './boot/vmlinuz-*' \
			"${kernel_modules_globs[@]}" 2>/dev/null || :
		find "$dir/unpacked" -name '*.ko*' -exec mv -t "$dir" {} +
		for m in "$dir"/*.ko.xz; do
			[[ ! -e $m ]] || xz -d "$m"
		done
		mv "$dir"/unpacked/boot/vmlinuz-* "$dir/vmlinuz"
		rm -r "$dir/unpacked" "$deb"
	fi
	echo "$dir"
}
kernel_modules_globs=()
for m in $kernel_modules; do
	kernel_modules_globs+=("./lib/modules/*/$m.ko*")
done

# raw_kernel KERNELDIR: prints the path of its kernel as an ELF file. Unpacking is the host's: a machine
# under translation takes a minute for it.
raw_kernel() {
	local at
	if [[ ! -s $1/vmlinux ]]; then
		at=$(LC_ALL=C grep -m 1 -abo -P '\xfd7zXZ\x00' "$1/vmlinuz" | head -n 1 | cut -d : -f 1)
		[[ -n $at ]] || die "$1/vmlinuz is not compressed by xz"
		# What follows the kernel is none of it.
		tail -c "+$((at + 1))" "$1/vmlinuz" | xz -dc --single-stream >"$1/vmlinux.new" 2>/dev/null || :
		[[ $(head -c 4 "$1/vmlinux.new" | tail -c 3) = ELF ]] || die "there is no kernel in $1/vmlinuz"
		mv "$1/vmlinux.new" "$1/vmlinux"
	fi
	echo "$1/vmlinux"
}

# xen_version: the newest one there are packages of
xen_version() {
	local version
	version=$(apt-cache "${apt_options[@]}" search --names-only '^xen-hypervisor-[0-9.]+-amd64$' |
		sed 's/^xen-hypervisor-\([0-9.]*\)-.*/\1/' | sort -V | tail -n 1)
	[[ -n $version ]] || die "no package of Xen is known: run 'apt-get update' as root"
	echo "$version"
}

# fetch_xen: prints the path of the hypervisor, as an ELF file
fetch_xen() {
	local deb dir
	deb=$(fetch_debs "xen-hypervisor-$(xen_version)-amd64")
	dir=$cache/xen/$(basename "$deb" .deb)
	if [[ ! -s $dir/xen ]]; then
		rm -rf "$dir"
		mkdir -p "$dir/unpacked"
		dpkg -x "$deb" "$dir/unpacked"
		gzip -dc "$dir"/unpacked/boot/xen-*-amd64.gz >"$dir/xen.new"
		mv "$dir/xen.new" "$dir/xen"
		rm -r "$dir/unpacked"
	fi
	echo "$dir/xen"
}
