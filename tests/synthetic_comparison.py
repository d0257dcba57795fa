"""Two arms of two runs each, whose tokens, pass rates and differences are known: what a comparison has to find."""

from pathlib import Path

from tests import synthetic_run as synthetic


def small_comparison(root: Path) -> tuple[dict[str, list[Path]], dict[Path, list[synthetic.Node]]]:
    """Write them under `root`; gives the arms' runs and every run's nodes.

    mars solves h3 and h5, which grpo's last version does not, and loses h4. Its second run sampled only half of its
    version 0.
    """
    arms = {"grpo": [root / "g-0", root / "g-1"], "mars": [root / "m-0", root / "m-1"]}
    nodes = {run: synthetic.small_run(run) for runs in arms.values() for run in runs}
    short = arms["mars"][1]
    later = [node for node in nodes[short] if node.version == 1]
    nodes[short] = [*synthetic.walk(synthetic.grow(0, "worked", synthetic.WORKED)), *later]
    synthetic.write_trees(short, nodes[short], 2)
    for run in arms["grpo"]:
        synthetic.write_evals(run, "heldout", 2, synthetic.SMALL_EVALS["heldout", 0], 3)
    return arms, nodes
