"""Leases of local GPUs: each embed job takes a device that no other job of this user on this machine has.

Snakemake counts GPUs but hands out no numbers. A lease is a lock on a file (``flock``), which the kernel releases when
its holder ends, however it ends: nothing is left to clean up after a crash.
"""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from nerprobe.errors import LeaseError
from nerprobe.log import logger

ASSIGNED = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_JOB_ID")
"""Where one of these is set and one device is seen, somebody gave it to this job alone."""
WAIT = 0.5
"""Seconds between two looks for a free device."""


def lease_folder() -> Path:
    """Return the folder of the lock files: ``$NERPROBE_LEASES``, or one of this user on this machine.

    Not below ``TMPDIR``, the home or the cache: these differ between shells, or are shared between machines.
    """
    return Path(os.environ.get("NERPROBE_LEASES") or f"/tmp/nerprobe-{os.getuid()}")


def devices_to_share(device: str) -> list[str]:
    """Return the devices that a job may choose from; empty where it has no choice.

    ``$NERPROBE_DEVICES`` names them, such as ``cuda:1,cuda:3``; otherwise they are all that torch sees. There is no
    choice where somebody else gave this job one device, or where the configuration names one.

    Args:
        device: ``embed.device`` of the configuration.
    """
    if device not in ("auto", "cuda"):
        return []
    named = [name.strip() for name in os.environ.get("NERPROBE_DEVICES", "").split(",")]
    if any(named):
        return list(dict.fromkeys(filter(None, named)))
    import torch

    count = torch.cuda.device_count()
    if count == 1 and any(os.environ.get(name) for name in ASSIGNED):
        return []
    return [f"cuda:{number}" for number in range(count)]


def _lock_name(device: str) -> str:
    """Return one name of a device, whatever its number is under this process's ``CUDA_VISIBLE_DEVICES``."""
    if device.startswith("cuda"):
        import torch

        try:
            device = str(torch.cuda.get_device_properties(device).uuid)
        except (AssertionError, RuntimeError) as error:
            raise LeaseError(
                "there is no such device",
                where="NERPROBE_DEVICES",
                expected=f"devices that torch sees: {torch.cuda.device_count()} here",
                got=device,
            ) from error
    return re.sub(r"[^A-Za-z0-9-]", "_", device) + ".lock"


def _made(folder: Path) -> Path:
    """Make the folder of the locks; refuse one that another user could have put there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.lstat().st_uid
    except OSError as error:
        raise LeaseError(
            "the folder for the locks of GPUs cannot be made",
            where=str(folder),
            got=error.strerror or "",
            todo="name another one in NERPROBE_LEASES",
        ) from error
    if owner != os.getuid():
        raise LeaseError(
            "the folder for the locks of GPUs is of another user",
            where=str(folder),
            todo="name another one in NERPROBE_LEASES",
        )
    return folder


@contextmanager
def lease(devices: Sequence[str]) -> Iterator[str]:
    """Take the first free one of some devices, waiting while all are taken; give it back at the end.

    Args:
        devices: Names; jobs of one user on one machine that name the same device share it in turn.

    Raises:
        LeaseError: If the locks cannot be kept.
    """
    folder = _made(lease_folder())
    locks = {
        device: FileLock(folder / _lock_name(device), fallback_to_soft=False, preserve_lock_file=True)
        for device in devices
    }
    told = False
    while True:
        for device, lock in locks.items():
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            try:
                logger.info("device %s", device)
                yield device
            finally:
                lock.release()
            return
        if not told:
            logger.info("waiting for a device: %s taken by other jobs", ", ".join(devices))
            told = True
        time.sleep(WAIT)


@contextmanager
def leased_device(device: str) -> Iterator[str]:
    """Give the device to compute on: one of one's own where there are several to share, else as configured."""
    devices = devices_to_share(device)
    if not devices:
        yield device
        return
    with lease(devices) as own:
        try:
            yield own
        finally:
            _free(own)


def _free(device: str) -> None:
    """Give the memory of a device back before its lease: what follows, such as writing files, needs none of it."""
    if device.startswith("cuda"):
        import torch

        gc.collect()
        torch.cuda.empty_cache()
