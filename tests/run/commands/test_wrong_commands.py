"""A wrong command is refused before PyTorch is imported, which takes seconds."""

import subprocess
import sys

import pytest

COMPARE = ("--graphs", "karate", "--epsilons", "1", "--out", "out")
# A command line by its parts, and words of the message.
WRONG = {
    ("fit", "--config", "bter", "--privacy.epsilo", "2"): "did you mean privacy.epsilon?",
    ("fit", "--config", "bter", "--model.count_shar", ".1"): "did you mean count_share?",
    ("fit",): "privacy.epsilon is missing",
    ("fit", "--config", "wrong.yaml"): "gone.csv: no such file",
    ("fit", "les_mis", "--epsilon", "1"): "did you mean les_miserables?",
    ("fit", "--config", "bter", "--nodes", "gone.txt"): "nodes gone.txt: no such file",
    ("predict", "--config", "bter"): "predict needs --ckpt_path FILE",
    ("validate", "--config", "bter", "--ckpt_path", "gone.ckpt"): "gone.ckpt: no such file",
    ("test", "--config", "bter", "--ckpt_path", "gone.ckpt"): "gone.ckpt: no such file",
    ("generate", "gone"): "gone: no release/generator.safetensors in it",
    ("evaluate", "gone"): "gone",
    ("attack", "gone"): "gone",
    ("audit", "gone", "--epsilon", "1"): "unknown graph 'gone'",
    ("compare", "--like", "gone", "--out", "out"): "gone",
    ("attack", "karat", "karate"): "did you mean karate?",
    ("attack", "karate", "gone/release"): "gone/release: no such file",
    ("attack", "karate", "karate", "--baseline-config", "btr"): "did you mean bter?",
    ("evaluate", "gone.csv", "karate"): "gone.csv: no such file",
    ("evaluate", "karat", "karate"): "did you mean karate?",
    ("evaluate", "karate", "gone/release"): "gone/release: no such file",
    ("audit", "--config", "bter", "--canariess", "9"): "did you mean --canaries?",
    ("audit", "--config", "btr", "--canaries", "9"): "did you mean bter?",
    ("audit", "--config", "bter", "--privacy.epsilon", "lots"): "got 'lots'",
    ("audit", "--config", "bter", "--canaries", "many"): "invalid int value: 'many'",
    ("compare", "--methods", "btr", *COMPARE): "did you mean bter?",
    ("compare", "--methods", "bter", "--graphs", "karat", *COMPARE[2:]): "did you mean karate?",
    ("compare", "--methods", "bter", *COMPARE, "--epsilons", "-1"): "got -1",
    ("compare", "--study", "gone.yaml", "--out", "out"): "study gone.yaml: no such file",
    ("card", "gone"): "gone: no release",
    ("verify", "gone"): "gone: no such folder",
    ("plan", "--epsilon", "1", "--nodes", "1"): "--num-nodes must be 2 or more",
    ("list", "--al"): "did you mean --all?",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Exit code, message and slow modules of each command, one after another in one process."""
    folder = tmp_path_factory.mktemp("wrong")
    data = "data: {class_path: EdgeListDataModule, init_args: {name: gone.csv}}"
    config = f"model: BTER\n{data}\nprivacy: {{epsilon: 1.0}}\n"
    (folder / "wrong.yaml").write_text(config)
    code = (
        "import contextlib, io, sys; from lightning_dpg.main import main\n"
        "for args in eval(sys.argv[1]):\n"
        "    text = io.StringIO()\n"
        "    with contextlib.redirect_stderr(text): code = main(args)\n"
        "    slow = {'torch', 'numpy', 'networkx'} & {*sys.modules}\n"
        "    print((code, text.getvalue(), slow))"
    )
    command = [sys.executable, "-c", code, repr([[*args] for args in WRONG])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    assert not (folder / "out").exists()
    return dict(zip(WRONG, map(eval, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("args", WRONG, ids=" ".join)
def test_refused_before_torch(args, outcomes):
    code, message, slow = outcomes[args]
    assert (code, slow) == (2, set())
    assert WRONG[args] in message
