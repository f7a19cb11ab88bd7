"""The OpenCL devices of this machine for the scripts beside: the system's, and Intel's runtime where it is installed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCHES = {"mlp": 32, "lenet5": 64, "mobilenetv2-32": 64, "resnet18-32": 64}


def intel_icd():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "stoker/intel-opencl/intel.icd"


def environments():
    """{name: what to add to the environment to see that device alone}. OCL_ICD_VENDORS of the caller's goes before all."""
    if os.environ.get("OCL_ICD_VENDORS"):
        return {"OpenCL": {}}
    found = {}
    if any(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")):
        found["PoCL" if pathlib.Path("/etc/OpenCL/vendors/pocl.icd").exists() else "OpenCL"] = {}
    if intel_icd().exists():
        folder = pathlib.Path(tempfile.gettempdir()) / f"stoker-intel-{os.getuid()}"
        folder.mkdir(exist_ok=True)
        (folder / "intel.icd").write_text(intel_icd().read_text())
        found["Intel"] = {"OCL_ICD_VENDORS": f"{folder}/"}
    if not found:
        sys.exit("no OpenCL driver is installed")
    return found


def stoker(program, arguments, environment):
    command = [str(program), *map(str, arguments)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}, check=False)
    if result.returncode != 0:
        sys.exit(f"failed with status {result.returncode}: {' '.join(command)}")
    return result.stdout


def bench_row(program, net, batch, device, environment, *options):
    """The one row of `stoker bench` for a net and a device."""
    rows = json.loads(stoker(program, ["bench", "--models", net, "--devices", device, "--batch", batch, "-o", "json",
                                       *options], environment))
    if len(rows) != 1:
        sys.exit(f"expected one row for {net}, got {len(rows)}")
    return rows[0]
