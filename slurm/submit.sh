#!/usr/bin/env bash
# Check what can be checked without a GPU, and only then queue the job: a wrong path costs seconds here and a night in the queue.
#
#   slurm/submit.sh [sbatch options] -- --config RECIPE data.path=DIR output=RUN [key=value ...]
#
# Run on the login node. Everything before -- goes to sbatch, everything behind it to `perse preflight` and to training. Paths are
# relative to the repository. The environment is that of train.sbatch, and GPU is the kind to plan memory for (a100-80gb unless you say GPU=h100-80gb).
#
# Trade-off: only --nodes (-N) and --gpus-per-node are understood here, because the number of processes depends on them; what else
# sbatch is asked for it judges itself.

set -euo pipefail

refuse() {
    echo "perse: $*" >&2
    exit 2
}

# The value of sbatch's option $1 (in short $2) among the other arguments, or train.sbatch's own. The last one counts, as for sbatch.
asked() {
    local long=$1 short=$2 value
    shift 2
    value=$(sed -n "s/^#SBATCH --$long=\([^ ]*\).*/\1/p" slurm/train.sbatch)
    while (($#)); do
        case $1 in
            "--$long="*) value=${1#*=} ;;
            "--$long" | "$short") value=${2-} ;;
            "$short"[0-9]*) value=${1#"$short"} ;;
        esac
        shift
    done
    echo "$value"
}

here=$(dirname "${BASH_SOURCE[0]}")
cd "$here/.."

options=()
while (($#)) && [[ $1 != -- ]]; do
    options+=("$1")
    shift
done
(($#)) || refuse "found no --; write slurm/submit.sh [sbatch options] -- --config RECIPE data.path=DIR output=RUN"
shift
[[ " $*" == *" output="* ]] || refuse "found no output=... behind --; give the run's folder, on a file system that all nodes share"

nodes=$(asked nodes -N "${options[@]}")
gpus=${GPUS_PER_NODE:-$(asked gpus-per-node -- "${options[@]}")}
gpus=${gpus##*:} # a100:4
[[ $nodes =~ ^[1-9][0-9]*$ ]] || refuse "found '$nodes' nodes; give one number, since a step is divided among all processes"
[[ $gpus =~ ^[1-9][0-9]*$ ]] || refuse "found '$gpus' GPUs on a node; give one number, as in --gpus-per-node=8"

export HF_HUB_OFFLINE=${HF_HUB_OFFLINE-1} # as in the job: what is missing then is missing now
if [[ -n ${CONTAINER:-} ]]; then
    perse=(apptainer exec "$CONTAINER" perse)
else
    perse=("${VENV:-.venv}/bin/perse")
fi
ACCELERATE_CONFIG=${ACCELERATE_CONFIG:-$("${perse[@]}" train --launch-file "$@")}
export ACCELERATE_CONFIG
"${perse[@]}" preflight --nodes "$nodes" --gpus-per-node "$gpus" --launch "$ACCELERATE_CONFIG" --gpu "${GPU:-a100-80gb}" "$@"

mkdir -p logs # sbatch makes no folder, and a job without its log fails unheard
exec sbatch --output=logs/%x-%j.log "${options[@]}" slurm/train.sbatch "$@"
