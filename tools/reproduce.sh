#!/usr/bin/env bash
# Train again what stands in README and docs, and write it there: reproduce.sh [TABLE ...] (default: all tables).
# One run a core at a time; a finished run is left alone, an interrupted one goes on. Work directories:
# work_dirs/reproduce/TABLE/ROW_seed-SEED. Records, from which the pages are written: docs/records/TABLE.json.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"

# Runs beside each other have one thread each; glibc keeps its memory instead of asking for it in every step.
export python OMP_NUM_THREADS=1
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592:glibc.malloc.hugetlb=1

tables=(repeat digits digits-half twin-digits twin-digits-10e scenes scenes-rates relational-scenes relational-rates
    search search-10e five-digits start start-scenes vt-anywhere vt-anywhere-scenes
    survey survey-swaps survey-teacher survey-claims
    moving-digits moving-digits-shuffled moving-digits-512
    where-{twin-digits,digit-scenes,sort-of-clevr,svrt-1}
    relations-{svrt-7,psvrt,sort-of-clevr-twin,pathfinder-short,pathfinder-long}
    sample-efficiency-search sample-efficiency-chance sample-efficiency)
ten_epochs=(train_cfg.max_epochs=10 param_scheduler.1.end=2560 param_scheduler.1.T_max=2460)
five_epochs=(train_cfg.max_epochs=5 param_scheduler.1.end=5 param_scheduler.1.T_max=4)
third=(train_cfg.max_iters=400 param_scheduler.0.end=40 param_scheduler.1.begin=40 param_scheduler.1.end=400
    param_scheduler.1.T_max=360)
sgd=(optim_wrapper.optimizer.type=SGD optim_wrapper.optimizer.momentum=0.9 optim_wrapper.optimizer.weight_decay=1e-4
    optim_wrapper.clip_grad.max_norm=1)
lr=optim_wrapper.optimizer.lr
bfloat16=optim_wrapper.type=vt.CPUAmpOptimWrapper # a step takes about half the time so
fast="$bfloat16 optim_wrapper.optimizer.fused=True" # up to rounding the same steps of the optimizer
images=train_dataloader.dataset.num_images
resnet18=work_dirs/reproduce/digits/resnet18_digits_seed-0/epoch_15.pth
scenes_fpn=work_dirs/reproduce/scenes/fpn_r18_digit-scenes_seed-0/iter_1200.pth
pooled='model.backbone.out_type=featmap model.neck.type=GlobalAveragePooling model.head.in_channels=256'
four_stages='model.neck.in_channels=[32,64,128,256] model.decode_head.feature_strides=[4,8,16,32]'
five_digits=work_dirs/reproduce/five-digits/resnet18-half_five-digits_seed-0/epoch_10.pth

runs() { # runs TABLE: its runs in the order of its rows, one in a line: SEED ROW CONFIG [OPTION ...]
    local model name rates rate seeds step number
    [[ " ${tables[*]} " == *" $1 "* ]] || { echo "there is no table $1; there are: ${tables[*]}" >&2 && return 1; }
    case "$1" in
        repeat) # short runs, which a test repeats
            for model in vt-resnet18 vt-resnet18-norm; do
                row 0 "$model" "configs/vt_resnet/$model-half_digits.py" train_cfg.max_epochs=1 \
                    train_dataloader.dataset.indices=640 val_dataloader.dataset.indices=120
            done
            ;;
        digits)
            each '0 1 2' configs/{baselines/resnet18,vt_resnet/vt-resnet18,vt_resnet/vt-resnet18-norm}_digits.py
            each 0 configs/{vt_early/vt-early-resnet18,vit/vit-tiny}_digits.py
            ;;
        digits-half) each '0 1 2 3' $(halves digits) ;;
        twin-digits)
            each '0 1 2 3' $(halves twin-digits)
            each '0 1 2 3' configs/ablations/*/*_twin-digits.py
            ;;
        twin-digits-10e)
            {
                each '0 1 2 3' $(halves twin-digits)
                each '0 1 2' configs/ablations/table[3457]_*/*_twin-digits.py
                each 0 configs/ablations/table6_*/*_twin-digits.py
            } | sed "s/$/ ${ten_epochs[*]}/"
            ;;
        scenes) each '0 1 2' $(scene_configs digit-scenes) ;;
        relational-scenes)
            each '0 1 2' $(scene_configs relational-scenes) |
                sed "s#\$# model.backbone.init_cfg.checkpoint=$scenes_fpn#"
            ;;
        scenes-rates) # FPN at the rate of the recommended VT-FPN, and that one at others
            row '0 1 2' fpn_lr-0.006 configs/baselines/fpn_r18_digit-scenes.py $lr=0.006
            for rate in 0.0015 0.003 0.012; do
                row 0 vt-fpn-norm_lr-$rate configs/vt_fpn/vt-fpn-norm_r18_digit-scenes.py $lr=$rate
            done
            ;;
        relational-rates)
            row '0 1 2' fpn_lr-0.006 configs/baselines/fpn_r18_relational-scenes.py $lr=0.006 \
                model.backbone.init_cfg.checkpoint=$scenes_fpn
            ;;
        search)
            rates
            variants
            ;;
        search-10e)
            {
                row '0 1 2 3' resnet18_lr-0.004 configs/baselines/resnet18-half_twin-digits.py $lr=0.004
                row '0 1' resnet18_lr-0.008 configs/baselines/resnet18-half_twin-digits.py $lr=0.008
                row '0 1' step-0.03_lr-0.008 configs/vt_resnet/vt-resnet18-half_twin-digits.py \
                    model.backbone.step=0.03 $lr=0.008
                for step in 0.3 0.01; do
                    row '0 1' step-${step}_lr-0.004 configs/vt_resnet/vt-resnet18-half_twin-digits.py \
                        model.backbone.step=$step $lr=0.004
                done
            } | sed "s/$/ ${ten_epochs[*]}/"
            ;;
        five-digits) each 0 configs/baselines/resnet18-half_five-digits.py ;;
        start)
            for rate in 0.001 0.004; do starts vt-resnet18 AdamW $rate; done
            for rate in 0.0125 0.05; do starts vt-resnet18 SGD $rate "${sgd[@]}"; done
            for rate in 0.004 0.016; do starts vt-resnet18-norm AdamW $rate; done
            for rate in 0.0125 0.05; do starts vt-resnet18-norm SGD $rate "${sgd[@]}" model.backbone.step=0.3; done
            for rate in 0.004 0.016; do
                row '0 1 2' resnet18_AdamW-${rate}_scratch configs/baselines/resnet18-half_digits.py $lr=$rate
            done
            row '0 1 2' resnet18_SGD-0.05_scratch configs/baselines/resnet18-half_digits.py $lr=0.05 "${sgd[@]}"
            ;;
        start-scenes)
            for rate in 0.0015 0.006; do start_scenes vt-fpn $rate; done
            for rate in 0.006 0.024; do start_scenes vt-fpn-norm $rate; done
            ;;
        survey) # two learn from a table before
            each 0 configs/survey/vit-base_digits.py \
                $(find configs/survey -maxdepth 1 -name '*_digits.py' | grep -v -e vit-base -e _twin- -e _label-file_ | sort) |
                sed "s/$/ $bfloat16/; /distilled\|lv-vit/s#\$# model.teacher_checkpoint=$resnet18#"
            ;;
        survey-swaps) # each swap behind its base; CaiT with six of its 24 blocks
            each '0 1 2' configs/survey/{swin-tiny,ablations/swin-tiny_lepe,pvt-small,ablations/pvt-small_peg}_digits.py \
                configs/survey/{deit-small,ablations/deit-small_tokenlearner,cait-s24,ablations/cait-s24_vt-tokens}_digits.py \
                configs/survey/{vit-tokenlearner,ablations/vit-tokenlearner_fuser}_digits.py |
                sed "s/$/ $bfloat16 ${five_epochs[*]}/; /cait/s/$/ model.backbone.stages.0.depth=6/"
            ;;
        survey-teacher) each 0 configs/baselines/resnet18-half_digits.py ;;
        survey-claims) each '0 1 2' configs/survey/claims/*_digits.py ;; # two of them learn from survey-teacher's
        moving-digits) each '0 1 2' configs/mvit/{mvit,vit}-tiny_moving-digits{,-twin}.py ;;
        moving-digits-shuffled) # their weights, at a rate of zero, tested on frames in another order: table 9 of MViT
            for model in {mvit,vit}-tiny_moving-digits{,-twin}; do
                for number in 0 1 2; do
                    row $number "${model}_shuffled" "configs/mvit/$model.py" $lr=0 train_cfg.max_epochs=1 \
                        load_from="work_dirs/reproduce/moving-digits/${model}_seed-$number/epoch_6.pth" \
                        train_dataloader.dataset.indices=32 val_dataloader.dataset.shuffle_frames=True
                done
            done
            ;;
        moving-digits-512) # so few videos tell the variants apart
            each '0 1 2' configs/mvit/mvit-tiny_moving-digits.py configs/mvit/ablations/*_moving-digits.py |
                sed 's/$/ train_dataloader.dataset.num_videos=512 train_cfg.val_interval=6/'
            ;;
        vt-anywhere) each 0 configs/vt_anywhere/*_digits.py ;;
        vt-anywhere-scenes) each 0 configs/vt_anywhere/*_digit-scenes.py ;;
        where-digit-scenes)
            places '0 1' configs/{vt_fpn/fpn_vt-r18-norm,baselines/fpn_r18}_digit-scenes.py 0.006 "$four_stages" "$four_stages" |
                sed "s/$/ $fast/"
            ;;
        where-svrt-1) # more seeds: not every one learns it
            places '0 1 2' configs/sample_efficiency/{vt-resnet18-norm,resnet18}-half_2560-iters_svrt-1.py 0.004 "$pooled" |
                sed "/ none /!s/$/ $lr=0.004/; s/$/ $fast/"
            ;;
        where-*)
            places '0 1' configs/{vt_resnet/vt-resnet18-norm,baselines/resnet18}-half_"${1#where-}".py 0.004 "$pooled" |
                sed "s/$/ $fast/"
            ;;
        relations-*) each '0 1 2' $(halves "${1#relations-}") | sed "s/$/ $fast/" ;;
        sample-efficiency-search) # of its rates each config has the best one; next to a best one there are two others
            for model in configs/sample_efficiency/*.py; do
                rates='0.0003 0.001 0.004'
                [[ $model != */resnet18-half_* ]] || rates+=' 0.016'
                [[ $model != */vt-resnet18-half_* ]] || rates="0.0001 $rates"
                for rate in $rates; do
                    row 0 "$(basename "${model%%_2560*}")_$rate" "$model" $images=16384 $lr=$rate $fast \
                        val_dataloader.dataset.split=val
                done
            done
            ;;
        sample-efficiency-chance) # do those that stay at chance learn more from more, or anything?
            for model in vit swin; do
                row 0 "${model}_4x-iterations_65536" configs/sample_efficiency/${model}_2560-iters_svrt-1.py $fast $lr=0.001 \
                    $images=65536 train_cfg.max_iters=10240 train_cfg.val_interval=2560 param_scheduler.1.end=10240 \
                    param_scheduler.1.T_max=9984 default_hooks.checkpoint.interval=10240
            done
            row 0 vit_tested-on-what-it-learned_256 configs/sample_efficiency/vit_2560-iters_svrt-1.py $fast $lr=0.001 \
                $images=256 val_dataloader.dataset.split=train val_dataloader.dataset.num_images=256
            ;;
        sample-efficiency) # what stays at chance on many images is not tried on few; more seeds of the two to compare
            for number in 1024 4096 16384 65536; do
                for model in configs/sample_efficiency/*.py; do
                    [[ $number -ge 16384 || $model == *resnet18* ]] || continue
                    name=$(basename "${model%%_2560*}") seeds='0 1 2'
                    [[ $number == 1024 || ! $name =~ ^(vt-resnet18-norm|resnet18)-half$ ]] || seeds+=' 3 4 5'
                    row "$seeds" "${name}_$number" "$model" $images=$number $fast $(best_rate "$name")
                done
            done
            ;;
    esac
}

scene_configs() { # scene_configs DATA: FPN, VT-FPN, and the recommended one
    echo configs/{baselines/fpn,vt_fpn/vt-fpn,vt_fpn/vt-fpn-norm}_r18_"$1".py
}

halves() { # halves DATA: the configs of half the width, ResNet-18, VT-ResNet-18, and the recommended one
    echo configs/{baselines/resnet18,vt_resnet/vt-resnet18,vt_resnet/vt-resnet18-norm}-half_"$1".py
}

rates() { # for a VT-ResNet that trains better: learning rates, of the token-side matrices other ones
    local config=configs/vt_resnet/vt-resnet18-half_twin-digits.py rate
    row '0 1' step-0.1 $config model.backbone.step=0.1
    row '0 1' step-0.3 $config model.backbone.step=0.3
    for rate in 0.002 0.004 0.008; do
        row '0 1' resnet18_lr-$rate configs/baselines/resnet18-half_twin-digits.py $lr=$rate
        row '0 1' lr-$rate $config $lr=$rate
        row '0 1' step-0.3_lr-$rate $config model.backbone.step=0.3 $lr=$rate
    done
    for rate in 0.004 0.008; do
        row '0 1' step-0.1_lr-$rate $config model.backbone.step=0.1 $lr=$rate
        row '0 1' step-0.03_lr-$rate $config model.backbone.step=0.03 $lr=$rate
    done
    row '0 1' step-0.01_lr-0.004 $config model.backbone.step=0.01 $lr=0.004
}

variants() { # what else was tried, at the best of these rates
    local backbone=model.backbone relation=model.backbone.relation
    local norm="$relation.norm_cfg.type=LN $relation.norm_cfg.elementwise_affine=False $relation.scale_logits=True"
    variant 8-heads $relation.num_heads=8
    variant normalised $norm ${norm//relation/projector}
    variant normalised-relation $norm
    variant values $relation.type=vt.ValueTransformer
    variant drop-path-0.1 $backbone.drop_path_rate=0.1
    variant groups-4 $backbone.groups=4
}

best_rate() { # best_rate MODEL: the option of the rate that sample-efficiency-search found for it, once that is trained
    local records=docs/records/sample-efficiency-search.json
    [ ! -e $records ] || "$python" - $records "$1" <<'EOF'
import json, sys
runs = [run for run in json.load(open(sys.argv[1])) if run['label'].rpartition('_')[0] == sys.argv[2]]
if runs:
    best = max(runs, key=lambda run: run['metrics']['accuracy/top1'])
    print(f'optim_wrapper.optimizer.lr={best["label"].rpartition("_")[2]}')
EOF
}

variant() { # variant ROW OPTION ...
    row '0 1' "$1_step-0.1_lr-0.004" configs/vt_resnet/vt-resnet18-half_twin-digits.py model.backbone.step=0.1 $lr=0.004 "${@:2}"
}

places() { # places SEEDS CONFIG RESNET RATE MAP [AFTER]: VT modules at each stage of ResNet-18 (stage 3 is its layer2),
    # how many, of how many tokens; MAP are options where a convolutional stage comes last, AFTER where modules follow it
    local backbone=model.backbone anywhere=model.backbone.type=vt.VTResNetAnywhere number
    row "$1" none "$3" $lr=$4
    row "$1" stage-3 "$2" $anywhere "$backbone.places=[layer2]" $5
    row "$1" stage-4 "$2" $anywhere "$backbone.places=[layer3]" $5
    row "$1" stage-5 "$2"
    row "$1" stages-4-and-5 "$2" $anywhere "$backbone.places=[layer3,layer4]"
    row "$1" after-5 "$2" $anywhere "$backbone.places=[after_layer4]" ${6:-}
    for number in 1 3 4; do row "$1" "$number-modules" "$2" $backbone.num_modules=$number; done
    for number in 4 8 32 64; do row "$1" "$number-tokens" "$2" $backbone.num_tokens=$number; done
}

starts() { # starts MODEL OPTIMIZER RATE [OPTION ...]: from scratch, and from what learned five of the ten digits
    local init=model.backbone.init_cfg
    local run=("configs/vt_resnet/$1-half_digits.py" "$lr=$3" "${@:4}")
    row '0 1 2' "$1_$2-$3_scratch" "${run[@]}"
    row '0 1 2' "$1_$2-$3_pretrained" "${run[@]}" $init.type=Pretrained $init.checkpoint="$five_digits" $init.prefix=backbone.
}

start_scenes() { # start_scenes MODEL RATE: the same of segmentors
    row '0 1 2' "$1_AdamW-$2_scratch" "configs/vt_fpn/$1_r18_digit-scenes.py" $lr=$2 "${third[@]}"
    row '0 1 2' "$1_AdamW-$2_pretrained" "configs/vt_fpn/$1_r18-pretrained_digit-scenes.py" $lr=$2 "${third[@]}" \
        model.backbone.init_cfg.checkpoint=$five_digits
}

each() { # each SEEDS CONFIG ...: a row for each config, named as it is
    local config
    for config in "${@:2}"; do row "$1" "$(basename "$config" .py)" "$config"; done
}

row() { # row SEEDS ROW CONFIG [OPTION ...]: a run for each seed
    local seed
    for seed in $1; do echo "$seed" "${@:2}"; done
}

train() { # train TABLE SEED ROW CONFIG [OPTION ...]
    local work_dir="work_dirs/reproduce/$1/$3_seed-$2"
    [ -e "$work_dir/training.json" ] && return
    echo "$work_dir"
    mkdir -p "$work_dir"
    "$python" tools/train.py "$4" --work-dir "$work_dir" --resume --cfg-options "randomness.seed=$2" "${@:5}" \
        >"$work_dir/output.txt" 2>&1 || { tail -n 3 "$work_dir/output.txt"; return 255; }
    rm -f "$work_dir"/best_*.pth
}
export -f train

measure() { # measure TABLE: where the attention of its models goes, and pictures of it
    local seed config model
    case "$1" in
        digits)
            config=configs/vit/vit-tiny_digits.py
            "$python" tools/attention.py locality $config "work_dirs/reproduce/$1/vit-tiny_digits_seed-0/epoch_15.pth" \
                --images 360 --out docs/attention/vit-tiny_digits.json --plot docs/attention/vit-tiny_digits.png
            config=configs/vt_resnet/vt-resnet18_digits.py
            "$python" tools/show_tokens.py $config "work_dirs/reproduce/$1/vt-resnet18_digits_seed-0/epoch_15.pth" \
                --out docs/tokens.jpg
            ;;
        scenes)
            model=vt-fpn_r18_digit-scenes
            config=configs/vt_fpn/$model.py
            for seed in 0 1 2; do
                "$python" tools/attention.py tokens $config "work_dirs/reproduce/$1/${model}_seed-$seed/iter_1200.pth" \
                    --images 256 --out "docs/attention/${model}_seed-$seed.json"
            done
            "$python" tools/show_tokens.py $config "work_dirs/reproduce/$1/${model}_seed-0/iter_1200.pth" \
                --out docs/tokens_vt-fpn.jpg
            ;;
        sample-efficiency) # those that have attention
            for config in configs/sample_efficiency/{mvit,pvtv2,swin,vit,vt-*}_*.py; do
                model=$(basename "${config%%_2560*}")
                "$python" tools/attention.py objects "$config" \
                    "work_dirs/reproduce/$1/${model}_16384_seed-0/iter_2560.pth" \
                    --out "docs/attention/objects_$model.json" --plot "docs/where/objects_$model.jpg"
            done
            ;;
        survey-claims) "$python" tools/report.py claims ;;
        moving-digits)
            model=mvit-tiny_moving-digits
            "$python" tools/show_tokens.py configs/mvit/$model.py "work_dirs/reproduce/$1/${model}_seed-0/epoch_6.pth" \
                --images 3 --module -1 --out docs/tokens_mvit.jpg
            ;;
    esac
}

[ $# -gt 0 ] || set -- "${tables[@]}"
for table in "$@"; do
    runs "$table" >/dev/null # an unknown name is one before hours of training
done
install_vt ''
for table in "$@"; do
    # Seed by seed, so that a stop leaves all rows of fewer seeds.
    runs "$table" | sort --stable --key 1,1n |
        xargs --max-procs "$(env --unset OMP_NUM_THREADS nproc)" --max-lines=1 bash -c "train $table \"\$@\"" train
    runs "$table" | while read -r seed row _; do printf '%s\0' "work_dirs/reproduce/$table/${row}_seed-$seed"; done |
        xargs --null "$python" tools/report.py scores --out "docs/records/$table.json"
    measure "$table"
    "$python" tools/report.py pages
done
