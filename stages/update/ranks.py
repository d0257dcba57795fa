"""Several processes that train one policy together, one per GPU or a share of a CPU's cores (FSDP2 and torchrun).

Parameters, gradients and moments are sharded over the ranks; forward passes are dealt out; files hold whole tensors,
so that what several ranks wrote one can go on with, and the other way round. What it does not cover: tensor or
pipeline parallelism, more than one machine (the rule starts ranks on its own).
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from types import MethodType

import torch
from torch import Tensor

from stages.common.cli import UserError, die_with_parent
from stages.update.logprobs import Compute, pack_logprobs
from stages.update.pack import Pack


def device_of(choice: str) -> torch.device:
    """The device for ``auto``, ``cpu`` or ``gpu``; of several ranks each takes the GPU of its local rank."""
    if choice == "gpu" and not torch.cuda.is_available():
        raise UserError("--device gpu: torch finds no GPU; install the GPU environment, or use --device cpu")
    if choice == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    local = int(os.environ.get("LOCAL_RANK", 0))
    if local >= torch.cuda.device_count():
        raise UserError(f"--processes: {local + 1} ranks and {torch.cuda.device_count()} GPUs; one rank takes one GPU")
    return torch.device("cuda", local)


CPU = torch.device("cpu")


@dataclass(frozen=True)
class Ranks:
    """This process among `count` that train together; only the first writes files and messages."""

    rank: int = 0
    count: int = 1
    device: torch.device = CPU

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes."""
        return self.rank == 0

    def shard(self, model):
        """`model` with its parameters spread over the ranks; as it is where there is one."""
        if self.count == 1:
            return model
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        mesh = init_device_mesh(self.device.type, (self.count,))
        parts = [*model.get_decoder().layers, model]
        for part in parts:
            # resharded always, so that parameters() are shards whenever no forward or backward pass runs
            fully_shard(part, mesh=mesh, reshard_after_forward=True)
            # gradients are summed: each row was divided by the step's global denominator
            part.set_force_sum_reduction_for_comms(True)
            part.set_gradient_divide_factor(1.0)
        model.pack_logprobs = MethodType(_no_views, model)
        register_fsdp_forward_method(model, "pack_logprobs")
        return model

    def logprobs(self, model, pack: Pack, compute: Compute) -> tuple[Tensor, Tensor]:
        """:func:`pack_logprobs`; every rank has to call it, as parameters are gathered layer by layer."""
        return pack_logprobs(model, pack, compute) if self.count == 1 else model.pack_logprobs(pack, compute)

    def gathered(self, value: object) -> list:
        """`value` of every rank, by rank."""
        if self.count == 1:
            return [value]
        values: list = [None] * self.count
        torch.distributed.all_gather_object(values, value)
        return values

    def agree(self, error: UserError | None) -> None:
        """Raise `error` where any rank has one: the lowest such rank does, the others wait for their end.

        All ranks call it at the same place; the launcher ends them as soon as one has failed.
        """
        failed = [rank for rank, bad in enumerate(self.gathered(error is not None)) if bad]
        if not failed:
            return
        if error is not None and self.rank == failed[0]:
            raise error
        time.sleep(60)
        sys.exit(1)


ALONE = Ranks()


def _no_views(model, pack: Pack, compute: Compute) -> tuple[Tensor, Tensor]:
    """:func:`pack_logprobs` as FSDP wants what a module returns."""
    logp, entropy = pack_logprobs(model, pack, compute)
    return logp.clone(), entropy.clone()


def join(choice: str) -> Ranks:
    """This process' place among the ranks that torchrun started; alone where it did not start us."""
    count = int(os.environ.get("WORLD_SIZE", 1))
    device = device_of(choice)
    if count == 1:
        return Ranks(device=device)
    die_with_parent()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    torch.distributed.init_process_group(backend)
    return Ranks(torch.distributed.get_rank(), count, device)


def leave(ranks: Ranks) -> None:
    """Wait until every rank has come here, the writing one too."""
    if ranks.count > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def whole(tensor: Tensor) -> Tensor:
    """A sharded tensor put together (every rank has to call it), any other as it is."""
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def spread(value: Tensor, like: Tensor) -> Tensor:
    """`value`, a whole tensor, on the device, in the dtype and with the sharding of `like`; always a copy."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    moved = value.to(like.device, like.dtype, copy=True)
    if not isinstance(like, DTensor):
        return moved
    return distribute_tensor(moved, like.device_mesh, like.placements, src_data_rank=None)


def launch(count: int, argv: list[str]) -> int:
    """Run ``python -m stages.update`` with `argv` in `count` processes, as torchrun does; the exit status."""
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id=f"update-{os.getpid()}",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="127.0.0.1",  # a host's own name need not resolve
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)("-u", "-m", "stages.update", *argv)
    except ChildFailedError as error:  # the rank has said why
        return max(error.failures[error.get_first_failure()[0]].exitcode, 1)
    except SignalException as error:
        raise KeyboardInterrupt from error
    return 0
