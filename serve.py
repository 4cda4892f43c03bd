"""Serve a judge: python serve.py --config configs/serve/embedded.yaml model=RUN"""

from perse.commands.serve import main

if __name__ == "__main__":
    main()
