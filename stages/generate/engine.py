"""vLLM in this process, the same for the CPU and the GPU build.

A fresh engine serves one policy version: reloading weights into a live one may leave stale caches. Sampling
log-probabilities are the processed ones (after temperature), so that trainer / engine ratios are near 1.
"""

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from stages.common.config import Generate
from stages.common.timing import Timings


@dataclass(frozen=True)
class Request:
    """One completion to sample: the prompt's token ids, how many tokens at most, a seed of its own, and its group.

    Requests of a group stand one after the other.
    """

    name: str
    prompt_ids: list[int]
    max_tokens: int
    seed: int
    group: str = ""


@dataclass(frozen=True)
class Completion:
    """What was sampled: ids (end-of-sequence token included), their log-probabilities, and stop | length."""

    ids: list[int]
    logprobs: list[float]
    finish_reason: str


def _prepare(settings: Generate) -> None:
    """vLLM reads these when it is imported; what the user has set stays."""
    defaults = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in this process: 20 to 40 s less to start
        "VLLM_CPU_KVCACHE_SPACE": str(settings.kv_cache_gib),
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "HF_HUB_OFFLINE": "1",  # a policy is a local folder
        "TOKENIZERS_PARALLELISM": "false",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


class Engine:
    """A loaded policy that samples."""

    def __init__(self, policy: Path, settings: Generate, timings: Timings) -> None:
        _prepare(settings)
        warnings.filterwarnings("ignore", category=FutureWarning)  # of libraries, about libraries
        with timings.phase("import vllm"):
            from vllm import LLM
            from vllm.platforms import current_platform
        on_cpu = current_platform.is_cpu()
        device: dict[str, Any] = (
            # 32 tokens a block: the default of 128 never finds the short prompts of siblings in the prefix cache.
            {"enforce_eager": True, "block_size": 32}
            if on_cpu
            else {"gpu_memory_utilization": settings.gpu_memory_utilization}
        )
        with timings.phase("start engine"):
            self._llm = LLM(
                model=str(policy),
                dtype=settings.dtype,
                tensor_parallel_size=settings.tensor_parallel_size,
                max_model_len=settings.max_model_len,
                max_num_seqs=settings.max_num_seqs,
                max_num_batched_tokens=max(settings.max_model_len, 2048),
                # On a CPU a seeded request cannot be prefilled in chunks: its generator has no offset to go back to.
                enable_chunked_prefill=not on_cpu,
                enable_prefix_caching=True,
                logprobs_mode="processed_logprobs",
                seed=0,
                **device,
            )
        self._settings = settings

    def sample(self, requests: Sequence[Request]) -> list[Completion]:
        """Sample every request, with a progress bar; results in the order of the requests.

        Together, or group after group: what else is in a batch changes the last digits of log-probabilities, and so do
        cached keys and values that another batch left.

        Raises RuntimeError with the request's name when the engine gives a log-probability that is not finite.
        """
        from vllm import SamplingParams

        settings = self._settings
        params = [
            SamplingParams(
                temperature=settings.temperature,
                top_p=settings.top_p,
                top_k=settings.top_k,
                max_tokens=request.max_tokens,
                seed=request.seed,
                logprobs=0,
                detokenize=False,
            )
            for request in requests
        ]
        prompts = [{"prompt_token_ids": request.prompt_ids} for request in requests]
        if settings.batch == "all":
            outputs = self._llm.generate(prompts, params, use_tqdm=True)
        else:
            from tqdm import tqdm

            outputs = []
            groups = [list(group) for _, group in groupby(range(len(requests)), key=lambda at: requests[at].group)]
            for group in tqdm(groups, desc="sample", unit="group"):
                self._llm.reset_prefix_cache()
                outputs += self._llm.generate([prompts[i] for i in group], [params[i] for i in group], use_tqdm=False)
        return [_completion(request, output.outputs[0]) for request, output in zip(requests, outputs, strict=True)]


def _completion(request: Request, output: Any) -> Completion:
    ids = list(output.token_ids)
    logprobs = [step[token].logprob for token, step in zip(ids, output.logprobs, strict=True)]
    if not all(math.isfinite(value) for value in logprobs):
        raise RuntimeError(f"node {request.name}: the engine gave a log-probability that is not finite")
    return Completion(ids, logprobs, "length" if output.finish_reason == "length" else "stop")
