"""The real client of the hub in a process of its own: it reads its environment once, at import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from loopback_hub import LoopbackHub

REV = "0123456789abcdef0123456789abcdef01234567"
OTHER_REV = "f" * 40
DATA = "org/data"
TEXT = "él no es médico\n".encode() * 5000
TOKEN = "hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678"
FAST = {"attempts": 2, "base_seconds": 0.01, "cap_seconds": 0.3}
ONCE = FAST | {"attempts": 1}

CALLER = """
import json, logging, sys, time
logging.basicConfig(level=logging.INFO)
from nerprobe import hub
told = []
for name, arguments in json.load(sys.stdin):
    arguments["policy"] = hub.RetryPolicy(**arguments["policy"])
    begin = time.monotonic()
    try:
        value = getattr(hub, name)(**arguments)
        answer = {"value": str(value) if name != "hub_encoder_files" else [f.name for f in value]}
    except Exception as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    told.append(answer | {"seconds": time.monotonic() - begin})
print(json.dumps(told))
"""


class Client:
    """Runs functions of ``nerprobe.hub`` against a server, with a cache of its own.

    ``shell`` is a line that a shell runs first, such as a limit that the client then runs under.
    """

    def __init__(self, hub: LoopbackHub, home: Path, shell: str = "") -> None:
        self.hub, self.home, self.stderr = hub, home, ""
        self.before = ["sh", "-c", f'{shell} && exec "$@"', "sh"] if shell else []

    def calls(self, *calls: tuple[str, dict[str, Any]], **env: str) -> list[dict[str, Any]]:
        timeouts = {"HF_HUB_ETAG_TIMEOUT": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "1"}
        place = {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.home), "NO_PROXY": "127.0.0.1"}
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
        done = subprocess.run(
            [*self.before, sys.executable, "-c", CALLER],
            input=json.dumps([(name, {"policy": FAST} | arguments) for name, arguments in calls]),
            env=clean | timeouts | place | env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.stderr = done.stderr
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        return answers

    def file(self, filename: str = "BIO/train.txt", **kwargs: Any) -> tuple[str, dict[str, Any]]:
        arguments = {"repo": DATA, "repo_type": "dataset", "revision": REV, "filename": filename}
        return "hub_file", arguments | kwargs

    def blobs(self) -> list[Path]:
        return [path for path in self.home.glob("hub/*/blobs/*") if path.is_file()]

    def left(self) -> list[str]:
        """Names of all that a failed download might leave behind."""
        kept = [p for part in ("blobs", "snapshots") for p in self.home.glob(f"hub/*/{part}/**/*")]
        return [path.name for path in kept if path.is_symlink() or path.is_file()]
