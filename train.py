"""Train a judge: accelerate launch train.py --config configs/train/embedded_lora.yaml data.path=DIR output=RUN"""

from perse.commands.train import main

if __name__ == "__main__":
    main()
