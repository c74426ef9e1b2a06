"""Entry of ``python -m nerprobe``."""

from nerprobe.cli import main

main()
