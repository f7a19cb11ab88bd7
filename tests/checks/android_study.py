#!/usr/bin/env python3
"""android_study.py ROOT: tries tools/android/study with an adb that is a script and a phone that is a folder."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
SCRIPT = ROOT / "tools/android/study"
ARM64_HEADER = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00" + bytes(44)
X86_HEADER = ARM64_HEADER.replace(b"\xb7\x00", b"\x3e\x00")
# Notes how it was called, writes results, and ends as the phone's file `mode` says.
STOKER = """#!/usr/bin/env bash
phone=$FAKE_PHONE
printf '%s\\n' "$@" >"$phone/arguments"
printf '%s' "$LD_LIBRARY_PATH" >"$phone/library_path"
mode=$(cat "$phone/mode")
echo "1 of 3 measured"
finish() { echo "<p>$1</p>" >out/report.html; echo '{}' >out/results.json; echo 'a,b' >out/matmul.csv; }
case $mode in
  good) finish whole ;;
  fails) finish partial; echo "the device was lost" >&2; exit 3 ;;
  nothing) exit 4 ;;
  stubborn) trap '' INT; echo $$ >"$phone/pid"; while :; do sleep 0.05; done ;;
  waits) trap 'finish interrupted; exit 130' INT; while :; do sleep 0.05; done ;;
esac
"""


class Study(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stoker_android_")
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)
        self.phone = self.here / "phone"
        (self.phone / "tmp").mkdir(parents=True)
        self.put("devices", "SERIAL1\tdevice\n\n")
        self.put("abis", "arm64-v8a,armeabi-v7a\n")
        self.put("mode", "good")
        self.binary = self.here / "a stoker"
        self.binary.write_bytes(ARM64_HEADER)
        stand_in = self.here / "stand_in"
        stand_in.write_text(STOKER)
        stand_in.chmod(0o755)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.here), "ADB": str(ROOT / "tests/checks/fake_adb"),
                            "FAKE_PHONE": str(self.phone), "FAKE_STOKER": str(stand_in)}

    def put(self, name, text):
        (self.phone / name).write_text(text)

    def got(self, name):
        return (self.phone / name).read_text()

    def start(self, *options):
        # SIGINT must not be ignored from the start: a shell cannot undo that.
        return subprocess.Popen([SCRIPT, "--binary", self.binary, "--out", self.here / "results", *options],
                                cwd=self.here, env=self.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def call(self, *options):
        process = self.start(*options)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def expect_stop(self, *words, options=()):
        status, _, errors = self.call(*options)
        self.assertEqual(status, 1, errors)
        self.assertIn("tools/android/study: ", errors)
        for word in words:
            self.assertIn(word, errors)

    def expect_clean(self):
        self.assertEqual(list((self.phone / "tmp").iterdir()), [], "files were left on the phone")

    def test_help_has_an_example(self):
        status, output, _ = self.call("--help")
        self.assertEqual(status, 0)
        self.assertIn("tools/android/study --quick", output)

    def test_pulls_the_results_and_cleans_up(self):
        status, output, errors = self.call("--quick", "--device", "opencl:0")
        self.assertEqual(status, 0, errors)
        self.assertIn("1 of 3 measured", output)
        self.assertIn("Fake Phone 1 (SERIAL1)", output)
        self.assertIn("results/report.html", output)
        self.assertEqual(sorted(path.name for path in (self.here / "results").iterdir()),
                         ["matmul.csv", "report.html", "results.json"])
        self.assertEqual((self.here / "results/report.html").read_text(), "<p>whole</p>\n")
        self.assertEqual(self.got("arguments").split(), ["study", "--out", "out", "--quick", "--device", "opencl:0"])
        self.assertIn("/vendor/lib64", self.got("library_path").split(":"))
        self.expect_clean()

    def test_passes_options_through_as_they_are(self):
        strange = ["--note", "it's $HOME; `date` \"x\" *", "--empty", ""]
        self.assertEqual(self.call("--", *strange)[0], 0)
        self.assertEqual(self.got("arguments").split("\n")[:-1], ["study", "--out", "out", *strange])

    def test_names_the_folder_after_the_phone(self):
        process = subprocess.run([SCRIPT, "--binary", self.binary], cwd=self.here, env=self.environment, timeout=60,
                                 capture_output=True, text=True)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertTrue((self.here / "study-Fake-Phone-1/report.html").exists())

    def test_keeps_the_files_on_the_phone_if_asked(self):
        status, output, _ = self.call("--keep")
        self.assertEqual(status, 0)
        kept = list((self.phone / "tmp").iterdir())
        self.assertEqual(len(kept), 1)
        self.assertIn(f"/data/local/tmp/{kept[0].name}", output)

    def test_needs_adb(self):
        self.environment["ADB"] = "/nowhere/adb"
        self.environment["PATH"] = "/usr/bin:/bin"
        if subprocess.run(["bash", "-c", "type -P adb"], env=self.environment, stdout=subprocess.DEVNULL).returncode == 0:
            self.skipTest("this computer has an adb of its own")
        self.expect_stop("adb was not found", "apt install adb")

    def test_needs_a_phone(self):
        self.put("devices", "\n")
        self.expect_stop("no phone is attached", "USB debugging")

    def test_asks_which_of_several_phones(self):
        self.put("devices", "SERIAL1\tdevice\nSERIAL2\tdevice\n")
        self.expect_stop("several", "SERIAL1", "SERIAL2", "ANDROID_SERIAL")
        self.environment["ANDROID_SERIAL"] = "SERIAL2"
        self.assertEqual(self.call()[0], 0)
        self.assertNotIn("-s SERIAL1", self.got("calls"))
        self.assertEqual(self.call("--serial", "SERIAL1")[0], 0)
        self.expect_stop("no phone \"SERIAL3\"", "SERIAL1", options=["--serial", "SERIAL3"])

    def test_says_what_a_phone_that_is_not_ready_needs(self):
        for state, words in {"unauthorized": "allow USB debugging", "offline": "connect it again",
                             "no permissions (user in plugdev group)": "may not talk", "recovery": "recovery"}.items():
            self.put("devices", f"SERIAL1\t{state}\n")
            self.expect_stop("SERIAL1", words)

    def test_says_how_to_build_a_binary_that_is_absent(self):
        self.binary.unlink()
        self.expect_stop("there is no", "cmake --preset android")

    def test_refuses_a_binary_of_another_machine(self):
        self.binary.write_bytes(X86_HEADER)
        self.expect_stop("not a program for 64-bit Arm")
        self.binary.write_bytes(b"")
        self.expect_stop("not a program for 64-bit Arm")

    def test_refuses_a_phone_that_is_not_64_bit_arm(self):
        self.put("abis", "armeabi-v7a,armeabi\n")
        self.expect_stop("Fake Phone 1", "armeabi-v7a", "arm64-v8a")

    def test_says_which_step_failed(self):
        for step, words in {"push": "pushing the program", "pull": "pulling", "shell": "does not answer"}.items():
            self.put("fail", step + "\n")
            self.expect_stop(words)
        self.put("fail", "")

    def test_pulls_what_a_failed_study_left_and_keeps_its_status(self):
        self.put("mode", "fails")
        status, _, errors = self.call()
        self.assertEqual(status, 3)
        self.assertIn("the device was lost", errors)
        self.assertIn("status 3", errors)
        self.assertEqual((self.here / "results/report.html").read_text(), "<p>partial</p>\n")
        self.expect_clean()

    def test_says_so_if_a_study_left_nothing(self):
        self.put("mode", "nothing")
        self.expect_stop("status 4", "no report")
        self.expect_clean()

    def start_and_interrupt(self, mode):
        self.put("mode", mode)
        process = self.start()
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 30
        while not (self.phone / "library_path").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)  # until the stand-in has set its trap
        process.send_signal(signal.SIGINT)
        return process

    def test_a_second_ctrl_c_gives_up_and_cleans_up(self):
        process = self.start_and_interrupt("stubborn")
        while "Ending the study" not in process.stdout.readline():
            pass
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.expect_clean()
        with self.assertRaises(ProcessLookupError, msg="the study still runs"):
            os.kill(int(self.got("pid")), 0)

    def test_ctrl_c_ends_the_study_and_pulls_what_was_done(self):
        process = self.start_and_interrupt("waits")
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("Ending the study", output)
        self.assertEqual((self.here / "results/report.html").read_text(), "<p>interrupted</p>\n")
        self.expect_clean()


if __name__ == "__main__":
    unittest.main()
