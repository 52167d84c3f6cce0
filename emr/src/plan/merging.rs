//! The merge of a run: by one program, or by the tasks of a plan. A Hadoop job of maps alone runs the tasks; `merge plan` writes
//! their list, and `merge assemble` makes the dataset of the results.

use crate::job::Job;

/// The list of tasks.
pub const LIST: &str = "tasks.txt";

/// Flags of `merge` that belong to `merge assemble`.
const OF_ASSEMBLING: [&str; 2] = ["--padded", PARQUET];
/// The flag of `merge` that has no value.
const PARQUET: &str = "--parquet";

/// The merge of a job's run.
#[derive(Clone, Debug)]
pub struct Merging<'a> {
    job: &'a Job,
    tasks: u32,
    /// `--s3` on the machine that runs the programs.
    s3: Vec<String>,
}

impl<'a> Merging<'a> {
    /// A merge by this number of tasks of each kind; 1 is one program.
    pub fn new(job: &'a Job, tasks: u32, s3: Vec<String>) -> Self {
        Self { job, tasks, s3 }
    }

    /// Whether one program merges the run, without a plan.
    pub fn is_whole(&self) -> bool {
        self.tasks == 1
    }

    /// The arguments of one program that merges the run.
    pub fn whole(&self) -> Vec<String> {
        let Self { job, s3, .. } = self;
        let run = ["--run".to_owned(), job.run.to_string(), "--out".to_owned(), job.dataset.to_string()];
        [&run, &s3[..], &job.merge_flags()].concat()
    }

    /// The arguments that write the plan.
    pub fn plan(&self) -> Vec<String> {
        let tasks = ["--tasks".to_owned(), self.tasks.to_string()];
        let (_, flags) = taken(self.job.merge_flags(), &OF_ASSEMBLING);
        [self.of_plan("plan"), tasks.to_vec(), flags].concat()
    }

    /// The arguments that run tasks. A map task has one core.
    pub fn work(&self) -> Vec<String> {
        [self.of_plan("work"), ["--threads", "1"].map(str::to_owned).to_vec()].concat()
    }

    /// The arguments that make the dataset.
    pub fn assemble(&self) -> Vec<String> {
        let out = ["--out".to_owned(), self.job.dataset.to_string()];
        let (flags, _) = taken(self.job.merge_flags(), &OF_ASSEMBLING);
        [self.of_plan("assemble"), out.to_vec(), flags].concat()
    }

    /// The name of the plan. Another number of tasks is another plan, so that a job can be repeated on another cluster.
    pub fn name(&self) -> String {
        format!("tasks-{}", self.tasks)
    }

    /// The name of the list in the run.
    pub fn list(&self) -> String {
        format!("merge/{}/{LIST}", self.name())
    }

    fn of_plan(&self, command: &str) -> Vec<String> {
        let plan = [command, "--run", &self.job.run.to_string(), "--plan", &self.name()].map(str::to_owned);
        [&plan, &self.s3[..]].concat()
    }
}

/// Divides flags, each with its value if it has one, into those of these names and the others.
pub fn taken(flags: Vec<String>, names: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut others = flags;
    let mut taken = Vec::new();
    while let Some(at) = others.iter().position(|flag| names.contains(&flag.as_str())) {
        let length = if others[at] == PARQUET { 1 } else { 2 };
        taken.extend(others.drain(at..others.len().min(at + length)));
    }
    (taken, others)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::job::EXAMPLE;

    #[test]
    fn each_flag_of_merge_belongs_to_the_plan_or_to_assembling() {
        let with = "vocabulary-size = 10000\npadded = 400\nparquet = true\nwithout = \"s3://bucket/test.h5\"";
        let text = EXAMPLE.replace("vocabulary-size = 10000", with);
        let job = Job::parse(Path::new("/jobs/JOB.toml"), &text).unwrap();
        let merging = Merging::new(&job, 8, vec!["--s3".to_owned(), "region=x".to_owned()]);
        let run = "--run s3://bucket/runs/reviews-1 --plan tasks-8 --s3 region=x";
        let without = "--vocabulary-size 10000 --without s3://bucket/test.h5 --bad-lines-max 0.01";
        assert_eq!(merging.plan().join(" "), format!("plan {run} --tasks 8 {without}"));
        assert_eq!(merging.work().join(" "), format!("work {run} --threads 1"));
        let assembled =
            format!("assemble {run} --out s3://bucket/datasets/reviews.h5 --padded 400 --parquet");
        assert_eq!(merging.assemble().join(" "), assembled);
        assert_eq!(merging.list(), "merge/tasks-8/tasks.txt");
    }
}
