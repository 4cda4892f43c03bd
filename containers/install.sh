#!/bin/sh
# What both images run while they are built, and a cluster without containers runs by hand:
#   install.sh packages NAME ...          Debian's packages, from its servers; the one name 'none': nothing, no network
#   install.sh wheels WHEELHOUSE VENV     perse into a new virtual environment, from the wheels of wheelhouse.sh alone
#                                         (EXTRAS=train,cluster,report, VARIANT=cuda|cpu)
# One script for the three, so that what was tried in one place is what runs in the others.
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 2
}

packages() {
    [ "$*" != none ] || return 0
    apt-get update
    apt-get install --yes --no-install-recommends "$@"
    rm -rf /var/lib/apt/lists/*
}

wheels() {
    [ $# -eq 2 ] || fail "give the folder of wheels and the folder of the new environment: install.sh wheels WHEELHOUSE VENV"
    wheelhouse=$1 venv=$2 extras=${EXTRAS:-train,cluster,report} variant=${VARIANT:-cuda}
    [ -f "$wheelhouse/SHA256SUMS" ] && [ -f "$wheelhouse/VARIANT" ] || fail "$wheelhouse has no SHA256SUMS and VARIANT: make it with containers/wheelhouse.sh on a machine with internet"
    [ ! -e "$venv" ] || fail "$venv exists: remove it, or name another folder"
    holds=$(cat "$wheelhouse/VARIANT")
    [ "$holds" = "$variant" ] || fail "VARIANT is $variant, and $wheelhouse is for $holds: give the folder that containers/wheelhouse.sh $variant made"
    found=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "there is no python3 here; Python 3.11 is needed"
    [ "$found" = 3.11 ] || fail "python3 is Python $found, and the wheels are for 3.11: put a Python 3.11 first on PATH"
    (cd "$wheelhouse" && sha256sum --check --quiet SHA256SUMS) || fail "wheels in $wheelhouse differ from its SHA256SUMS: carry the folder over again"

    trap 'rm -rf "$venv"' EXIT # half an environment looks like a whole one
    python3 -m venv "$venv"
    # --isolated: a pip configuration of this machine must not add another source.
    "$venv/bin/pip" --isolated install --quiet --disable-pip-version-check --no-cache-dir --no-index \
        --find-links "$wheelhouse" -c "$wheelhouse/constraints.txt" "perse-judge[$extras]"
    "$venv/bin/pip" --isolated check
    "$venv/bin/python" -c 'import torch' # its libraries are found on this system
    "$venv/bin/perse" --help >/dev/null
    trap - EXIT
}

case ${1:-} in
packages | wheels) "$@" ;;
*) fail "say what to install: 'packages NAME ...' or 'wheels WHEELHOUSE VENV' (found '${1:-}')" ;;
esac
