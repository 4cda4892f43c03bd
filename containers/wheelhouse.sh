#!/bin/sh
# Gathers every wheel that training needs into one folder, on a machine with internet, to be carried to one without.
# Usage, in the repository: containers/wheelhouse.sh cuda|cpu    (PYTHON=python3.11, EXTRAS=train,cluster,report, OUT=wheelhouse)
#
# Built sdists and perse itself are wheels here too, so that the other side compiles nothing. The price: the folder fits one
# Python (3.11), one processor architecture, and CUDA or CPU, not both.
set -eu

variant=${1:-}
python=${PYTHON:-python3.11}
extras=${EXTRAS:-train,cluster,report}
folder=${OUT:-wheelhouse}/$variant

fail() {
    echo "wheelhouse.sh: $1" >&2
    exit 2
}

case $variant in
cuda | cpu) ;;
*) fail "say for what: containers/wheelhouse.sh cuda, or containers/wheelhouse.sh cpu (found '$variant')" ;;
esac
[ -f pyproject.toml ] && [ -f constraints.txt ] || fail "run it in the repository: $PWD has no pyproject.toml and constraints.txt"
found=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "there is no $python here; name a Python 3.11 as PYTHON"
[ "$found" = 3.11 ] || fail "$python is Python $found, the images have 3.11, and wheels fit one Python only: name a Python 3.11 as PYTHON"

# A second build beside an old one would leave two versions of a package, and pip would choose.
partial=$folder.partial
rm -rf "$partial"
"$python" -m pip wheel --quiet -c constraints.txt -w "$partial" ".[$extras]"

# The usual index gives torch for CUDA on Linux; asking for the other one is easily forgotten and costs 3 GB or a useless image.
has_cuda=no
for wheel in "$partial"/nvidia_cudnn*.whl; do [ ! -e "$wheel" ] || has_cuda=yes; done
case $variant-$has_cuda in
cpu-yes) fail "pip gave torch for CUDA: set PIP_EXTRA_INDEX_URL to the address for CPU on PyTorch's installation page, and run this again" ;;
cuda-no) fail "pip gave torch without CUDA: unset PIP_EXTRA_INDEX_URL and PIP_FIND_LINKS, and run this again" ;;
esac

cp constraints.txt "$partial/"
echo "$variant" >"$partial/VARIANT"
(cd "$partial" && sha256sum ./*.whl constraints.txt VARIANT >SHA256SUMS)
rm -rf "$folder"
mv "$partial" "$folder"
echo "$folder: $(find "$folder" -name '*.whl' | wc -l) wheels, $(du -sh "$folder" | cut -f1)"
