"""The actions of bootstrap/emr/ in a clean root, each delivered as one file."""

import json
import os
import re
import unittest

from clean_root import PROJECT, ActionTest, facts

PRIMARY = '{"instanceGroupId":"ig-1","isMaster": true,"isRunningNameNode":true}'
WORKER = '{"instanceGroupId":"ig-2","isMaster":false}'
INFO = "/mnt/var/lib/info"
CHRONY = "A9FEA97B,169.254.169.123,4,1795000000.1,{offset},0.000001,0.00001,-5.1,0.0,0.02,0.0004,0.0003,16.2,{status}"


class EmrTest(ActionTest):
    def on_emr(self, instance: str) -> None:
        self.root.write(f"{INFO}/instance.json", instance)
        self.root.write(f"{INFO}/job-flow.json", '{"jobFlowId" : "j-3ABC", "instanceGroups": []}')


class NodeCheck(EmrTest):
    def setUp(self):
        super().setUp()
        self.action = self.root.deliver("emr/node-check.sh")

    def test_a_clean_node_passes_twice_and_is_not_changed(self):
        self.on_emr(WORKER)
        before = self.root.state()
        for _ in range(2):
            found = facts(self.root.run(f"{self.action} --memory-min 64MiB --disk-min 64MB"))
            self.assertEqual((found["action"], found["arch"], found["glibc"]), ("node-check", "x86_64", "2.36"))
            self.assertEqual((found["cluster"], found["is_primary"], found["tmpdir"]), ("j-3ABC", False, "/tmp"))
            self.assertGreater(found["memory_bytes"], 1 << 28)
            self.assertGreater(found["disk_free_bytes"], 1 << 26)
            self.assertGreater(found["cores"], 0)
            # The clean root has neither chrony nor systemd.
            self.assertEqual((found["clock_synchronized"], found["clock_offset_s"]), (None, None))
        self.assertEqual(self.root.state(), before)

    def test_the_default_glibc_is_the_one_that_released_programs_require(self):
        makefile = re.search(r"^GLIBC := (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)[1]
        self.assertIn(f"glibc_min={makefile} ", (PROJECT / "bootstrap/emr/node-check.sh").read_text())

    def test_each_minimum_that_is_not_met_is_named(self):
        for arguments, message in [
            ("--glibc-min 2.99", "glibc 2.36, expected 2.99 or newer"),
            ("--arch aarch64", "architecture x86_64, expected aarch64"),
            ("--memory-min 900TiB", "MiB, expected at least 943718400 MiB: choose a larger instance type"),
            ("--disk-min 900TB", "free, expected at least 858306884 MiB: choose larger volumes"),
            ("--clock-max 1", "the clock is not known to be synchronized"),
        ]:
            with self.subTest(arguments):
                self.refused(f"{self.action} {arguments}", 78, message)
        found = self.refused(f"{self.action} --glibc-min 2.99 --memory-min 900TiB", 78, "glibc 2.36")
        self.assertIn("memory", found["error"])

    def test_an_offset_of_the_clock_is_measured_with_chrony(self):
        self.root.double("chronyc", f"echo '{CHRONY.format(offset='-0.25', status='Normal')}'")
        found = facts(self.root.run(f"{self.action} --clock-max 1"))
        self.assertEqual((found["clock_synchronized"], found["clock_offset_s"]), (True, 0.25))
        self.refused(f"{self.action} --clock-max 0.1", 78, "clock offset 0.250000 s, expected at most 0.1 s")
        self.root.double("chronyc", f"echo '{CHRONY.format(offset='0', status='Not synchronised')}'")
        self.refused(f"{self.action} --clock-max 1", 78, "the clock is not known to be synchronized")

    def test_a_folder_that_cannot_be_written_is_refused(self):
        self.refused(f"{self.action} --tmpdir /missing", 74, "/missing: cannot be written")
        self.refused(f"TMPDIR=/gone {self.action}", 74, "/gone: cannot be written")

    def test_a_node_of_another_kind_is_not_checked(self):
        self.on_emr(WORKER)
        found = facts(self.root.run(f"{self.action} --nodes primary --memory-min 900TiB"))
        self.assertEqual((found["skipped"], found["is_primary"]), (True, False))
        self.refused(f"{self.action} --nodes others --memory-min 900TiB", 78, "memory")
        self.on_emr(PRIMARY)
        self.refused(f"{self.action} --nodes primary --memory-min 900TiB", 78, "memory")
        self.assertTrue(facts(self.root.run(f"{self.action} --nodes others --memory-min 900TiB"))["skipped"])

    def test_wrong_arguments_are_refused_by_name(self):
        for arguments, message in [
            ("--memory-min 8XB", "--memory-min 8XB: expected a size such as 8GiB or 16GB"),
            ("--disk-min", "--disk-min without a value: expected a size"),
            ("--nodes master", "--nodes master: expected every, primary or others"),
            ("--memory 8GiB", "--memory: unexpected argument; see --help"),
        ]:
            with self.subTest(arguments):
                self.refused(f"{self.action} {arguments}", 64, message)
        self.refused(f"{self.action} --nodes primary", 66, f"{INFO}/instance.json: not found, expected on an EMR node")


class Scratch(EmrTest):
    def setUp(self):
        super().setUp()
        self.action = self.root.deliver("emr/scratch.sh")

    def test_the_folder_is_made_once_and_all_users_can_write_it(self):
        self.on_emr(PRIMARY)
        first = self.root.run(f"{self.action} --free-min 1MiB")
        found, before = facts(first), self.root.state()
        self.assertEqual((found["scratch"], found["folder"]), ("/var/lib/sentimill/scratch", "/var/tmp/sentimill-scratch"))
        self.assertEqual((found["kept"], found["is_primary"]), (False, True))
        second = facts(self.root.run(f"{self.action} --free-min 1MiB"))
        self.assertTrue(second["kept"])
        self.assertEqual(self.root.state(), before)
        used = self.root.run("bash --login -c 'touch $TMPDIR/one && stat --format %a $TMPDIR/. && echo $TMPDIR'")
        self.assertEqual(used.stdout, "1777\n/var/lib/sentimill/scratch\n", used.stderr)

    def test_the_largest_disk_is_chosen_and_kept_when_another_becomes_larger(self):
        # The tree has one file system. The table of disks names folders of it, and a folder that root cannot write.
        disks = "echo 'Avail Mounted on'; printf '%s\\n' '{small} /mnt' '{large} /mnt 1' '999000000000000 /proc' '999000000000 /boot/efi'"
        table = 'case "$*" in *target*) {disks};; *) exec /usr/bin/df "$@";; esac'
        self.root.run("mkdir -p '/mnt 1' /boot/efi")
        self.root.double("df", table.format(disks=disks.format(small=1000, large=2000)))
        self.assertEqual(facts(self.root.run(self.action))["folder"], "/mnt 1/sentimill/scratch")
        self.root.double("df", table.format(disks=disks.format(small=3000, large=2000)))
        self.assertEqual(facts(self.root.run(self.action))["folder"], "/mnt 1/sentimill/scratch")
        # The disk is detached.
        self.root.run("rm -r '/mnt 1'")
        found = facts(self.root.run(self.action))
        self.assertEqual((found["folder"], found["kept"]), ("/mnt/sentimill/scratch", False))

    def test_too_little_space_is_refused(self):
        self.refused(f"{self.action} --free-min 900TiB", 78, "free, expected at least 943718400 MiB")

    def test_a_node_of_another_kind_is_not_changed(self):
        self.on_emr(WORKER)
        before = self.root.state()
        self.assertTrue(facts(self.root.run(f"{self.action} --nodes primary"))["skipped"])
        self.assertEqual(self.root.state(), before)


class AsHadoop(EmrTest):
    """EMR runs actions as the user hadoop, who may use sudo."""

    def test_the_actions_work_as_the_user_of_emr(self):
        if os.getuid() != 0:
            self.skipTest("requires a second user, which a namespace of one user does not have")
        # `sudo -n COMMAND`, by a program with the permission to become root.
        self.root.double("sudo", 'shift; exec /suid/chroot --userspec=0:0 --skip-chdir / "$@"')
        self.root.double("aws", ShipLogs.AWS)
        self.root.write("/var/log/one.log", "first\n")
        actions = [self.root.deliver(f"emr/{name}.sh") for name in ("node-check", "scratch", "ship-logs")]
        arguments = ["--disk-min 1MiB", "--free-min 1MiB", "--to s3://logs --every 1 /var/log/one.log"]
        commands = [f"chroot --userspec=1000:1000 --skip-chdir / {action} {given}" for action, given in zip(actions, arguments, strict=True)]
        done = self.root.run(f"""
            mkdir /suid && cp /usr/sbin/chroot /suid && chmod 4755 /suid/chroot && chmod -R a+rx /emr
            {"; ".join(commands)}
            {ShipLogs.WAIT.format(what='[ -e /store/logs/*/var/log/one.log ]')}
            {"; ".join(commands)}
            chroot --userspec=1001:1001 / touch /var/lib/sentimill/scratch/of-a-task && stat --format %u /var/lib/sentimill/ship-logs/settings""")
        *lines, owner = done.stdout.splitlines()
        self.assertEqual(done.stderr, "")
        reports = [json.loads(line) for line in lines]
        self.assertEqual([report["ok"] for report in reports], [True] * 6)
        self.assertEqual([report.get("kept") for report in reports], [None, False, False, None, True, True])
        self.assertEqual(owner, "0")


class ShipLogs(EmrTest):
    # Copies into a folder in place of S3; `/refused` makes it fail as the AWS CLI does.
    AWS = """
        [ ! -e /refused ] || { echo 'fatal error: Unable to locate credentials' >&2; exit 1; }
        [ "$1 $2 $3" = 's3 cp --only-show-errors' ] && mkdir -p "$(dirname "/store/${5#s3://}")" && cp "$4" "/store/${5#s3://}"
        echo "$4" >>/copies"""
    # A minute, on a busy machine too.
    WAIT = "for _ in {{1..1200}}; do {what} && break; sleep 0.05; done"

    def setUp(self):
        super().setUp()
        self.action = self.root.deliver("emr/ship-logs.sh")
        self.root.write("/var/log/one.log", "first\n")

    def test_a_node_without_the_aws_cli_is_not_changed(self):
        before = self.root.state()
        found = facts(self.root.run(f"{self.action} --to s3://logs/job /var/log/one.log"))
        self.assertEqual((found["shipping"], found["reason"]), (False, "aws was not found on the PATH"))
        self.assertEqual(self.root.state(), before)

    def test_changed_files_are_copied_until_the_node_ends(self):
        self.root.double("aws", self.AWS)
        run = f"{self.action} --to s3://logs/job --every 1 /var/log/one.log '/var/log/app/*.log'"
        copied = "/store/logs/job/$(uname -n)/var/log"
        done = self.root.run(f"""
            set -e
            {run}; pid=$(cat /var/lib/sentimill/ship-logs/pid)
            {self.WAIT.format(what=f'[ -e {copied}/one.log ]')}
            {run}
            [ $pid = "$(cat /var/lib/sentimill/ship-logs/pid)" ]
            mkdir /var/log/app && echo second >'/var/log/app/a b.log'
            {self.WAIT.format(what=f'[ -e "{copied}/app/a b.log" ]')}
            echo last >>/var/log/one.log
            kill $pid
            {self.WAIT.format(what='! kill -0 $pid 2>/dev/null')}
            cat {copied}/one.log
            sort /copies | uniq -c
            {run}""")
        lines = done.stdout.splitlines()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"shipping":true,"kept":false', lines[0])
        self.assertIn('"shipping":true,"kept":true', lines[1])
        # Unchanged files are not copied again. The last change is copied at the end.
        self.assertEqual([line.split() for line in lines[2:-1]], [["first"], ["last"], ["1", "/var/log/app/a", "b.log"], ["2", "/var/log/one.log"]])
        self.assertIn('"shipping":true,"kept":false', lines[-1])

    def test_a_failure_of_s3_is_logged_and_repeated(self):
        self.root.double("aws", self.AWS)
        done = self.root.run(f"""
            touch /refused
            {self.action} --to s3://logs --every 1 /var/log/one.log
            {self.WAIT.format(what='grep -q "one.log: not copied: fatal error: Unable to locate credentials" /var/lib/sentimill/ship-logs/log')}
            rm /refused
            {self.WAIT.format(what='[ -e /store/logs/*/var/log/one.log ]')}
            echo copied""")
        self.assertEqual(done.stdout.splitlines()[-1], "copied", done.stderr)

    def test_other_options_replace_the_first_process(self):
        self.root.double("aws", self.AWS)
        done = self.root.run(f"""
            {self.action} --to s3://logs --every 9 /var/log/one.log; first=$(cat /var/lib/sentimill/ship-logs/pid)
            {self.action} --to s3://logs --every 8 /var/log/one.log
            ! kill -0 $first 2>/dev/null && pgrep -P 1 -fc 'ship-logs.sh --copy'""")
        self.assertEqual(done.stdout.splitlines()[-1], "1", done.stderr)

    def test_systemd_keeps_the_process_where_it_runs(self):
        # A systemctl of the few commands that the action needs. A process is active until it has ended, which its command line
        # does not tell: that is also empty for a moment while the process executes a program.
        self.root.double("systemctl", """
            pid=/pid unit=/etc/systemd/system/sentimill-ship-logs.service
            echo "$*" >>/systemctl
            case $1 in
                is-active) grep -q '^State:[[:space:]]*[^ZX]' /proc/"$(cat $pid)"/status 2>/dev/null ;;
                stop) kill "$(cat $pid)"; while "$0" is-active; do sleep 0.05; done ;;
                enable) $(sed -n 's/^ExecStart=//p' $unit) >/dev/null 2>&1 & echo $! >$pid ;;
                daemon-reload) [ -e $unit ] ;;
                *) exit 1 ;;
            esac""")
        self.root.double("aws", self.AWS)
        run = f"mkdir -p /run/systemd/system /etc/systemd/system; {self.action} --to s3://logs --every 1 /var/log/one.log"
        done = self.root.run(f"{run}; {run}; {self.WAIT.format(what='[ -e /store/logs/*/var/log/one.log ]')}; {run}5; cat /systemctl")
        lines = done.stdout.splitlines()
        self.assertEqual([json.loads(line).get("kept") for line in lines[:3]], [False, True, False], done.stdout + done.stderr)
        changes = [line for line in lines[3:] if not line.startswith("is-active")]
        start = ["daemon-reload", "enable --quiet --now sentimill-ship-logs.service"]
        self.assertEqual(changes, [*start, "stop sentimill-ship-logs.service", *start])

    def test_places_that_could_contain_a_secret_are_refused(self):
        for place in ("s3://key:secret@logs/job", "https://logs.s3.amazonaws.com/?X-Amz-Signature=1", "/var/log"):
            with self.subTest(place):
                done = self.root.run(f"{self.action} --to '{place}' /var/log/one.log")
                self.assertEqual(done.returncode, 64)
                self.assertIn("expected s3://BUCKET/PREFIX", done.stderr)


if __name__ == "__main__":
    unittest.main()
