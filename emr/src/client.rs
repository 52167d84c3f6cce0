//! Requests to Amazon EMR, one method per action, with limits of time and of retries.
//!
//! Requests that only read, and those that may be repeated without harm, are retried by Amazon's client. A
//! request that creates something is sent once: EMR has no client tokens, so a repetition after a lost
//! response would create a second cluster. [`crate::submission`] looks up what such a request did.

mod convert;
mod failure;
mod iam;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_emr::Client;
use aws_sdk_emr::config::Region;
use aws_sdk_emr::config::http::HttpRequest;
use aws_sdk_emr::config::retry::RetryConfig;
use aws_sdk_emr::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_emr::operation::RequestId;
use aws_sdk_emr::types::{CancelStepsInfo, CancelStepsRequestStatus, ClusterState, StepCancellationOption};
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use store::amazon::Kind;
use store::{S3Options, amazon};
use tokio::runtime::{self, Runtime};

use crate::cluster::{Cluster, Instance, Listed, Step};
use crate::plan::requests::add_job_flow_steps;

pub use failure::RequestFailure;
use failure::{explain, incomplete};

/// Maximum number of pages of one listing. A page has at least 50 entries.
const PAGES_MAX: usize = 200;
/// Maximum number of tries of a request that creates something, if EMR refuses it because of its rate. The pauses
/// between them double, to some 15 s in total.
const TRIES: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A client for one region. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Emr {
    client: Client,
    /// The same without retries, for requests that create something.
    once: Client,
    config: SdkConfig,
    /// Driven only by the calling thread.
    runtime: Arc<Runtime>,
}

/// What became of a request that creates something.
#[derive(Debug)]
pub enum Created<T> {
    /// The service confirmed it.
    Confirmed(T),
    /// The response was lost, or the service failed while it worked. It may have been carried out.
    Unknown(RequestFailure),
}

impl Emr {
    /// Creates a client. Credentials are fetched once, so that their absence is reported before any work.
    pub fn connect(options: &S3Options) -> Result<Self, RequestFailure> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| RequestFailure::no_client(&error))?;
        let config = runtime.block_on(amazon::config(options));
        if config.region().is_none() {
            return Err(RequestFailure::no_region());
        }
        runtime.block_on(amazon::check_credentials(&config)).map_err(RequestFailure::no_credentials)?;
        let once = aws_sdk_emr::config::Builder::from(&config).retry_config(RetryConfig::disabled()).build();
        let client = Client::new(&config);
        Ok(Self { client, once: Client::from_conf(once), config, runtime: Arc::new(runtime) })
    }

    /// The region to which requests are sent.
    pub fn region(&self) -> &str {
        self.client.config().region().map_or("", Region::as_ref)
    }

    /// The state of a cluster.
    pub fn cluster(&self, id: &str) -> Result<Cluster, RequestFailure> {
        let answer = self.runtime.block_on(self.client.describe_cluster().cluster_id(id).send());
        let answer = answer.map_err(|error| explain("DescribeCluster", Some(id), &error))?;
        answer.cluster().and_then(convert::cluster).ok_or_else(|| incomplete("DescribeCluster", "cluster"))
    }

    /// Clusters of this account and region that neither have ended nor are being terminated, the newest first.
    pub fn clusters(&self) -> Result<Vec<Listed>, RequestFailure> {
        use ClusterState::{Bootstrapping, Running, Starting, Waiting};
        let states = Some(vec![Starting, Bootstrapping, Running, Waiting]);
        let mut pages = self.client.list_clusters().set_cluster_states(states).into_paginator().send();
        let pages = self.pages("ListClusters", None, async || pages.next().await)?;
        Ok(pages.iter().flat_map(|page| page.clusters()).filter_map(convert::listed).collect())
    }

    /// The steps of a cluster, in the order in which they were added.
    pub fn steps(&self, cluster: &str) -> Result<Vec<Step>, RequestFailure> {
        let mut pages = self.client.list_steps().cluster_id(cluster).into_paginator().send();
        let pages = self.pages("ListSteps", Some(cluster), async || pages.next().await)?;
        let mut steps: Vec<_> =
            pages.iter().flat_map(|page| page.steps()).filter_map(convert::step).collect();
        // EMR lists the newest step first.
        steps.reverse();
        Ok(steps)
    }

    /// The instances of a cluster, including those that were replaced or have ended.
    pub fn instances(&self, cluster: &str) -> Result<Vec<Instance>, RequestFailure> {
        let mut pages = self.client.list_instances().cluster_id(cluster).into_paginator().send();
        let pages = self.pages("ListInstances", Some(cluster), async || pages.next().await)?;
        Ok(pages.iter().flat_map(|page| page.instances()).filter_map(convert::instance).collect())
    }

    /// Seconds of idleness after which EMR terminates a cluster, if the cluster has such a limit.
    pub fn idle_timeout_s(&self, cluster: &str) -> Result<Option<u64>, RequestFailure> {
        let request = self.client.get_auto_termination_policy().cluster_id(cluster);
        let answer = self.runtime.block_on(request.send());
        let answer = answer.map_err(|error| explain("GetAutoTerminationPolicy", Some(cluster), &error))?;
        let seconds = answer.auto_termination_policy().and_then(|policy| policy.idle_timeout());
        Ok(seconds.and_then(|seconds| u64::try_from(seconds).ok()))
    }

    /// The labels of all releases in this region.
    pub fn releases(&self) -> Result<Vec<String>, RequestFailure> {
        let mut pages = self.client.list_release_labels().into_paginator().send();
        let pages = self.pages("ListReleaseLabels", None, async || pages.next().await)?;
        Ok(pages.into_iter().flat_map(|page| page.release_labels.unwrap_or_default()).collect())
    }

    /// The instance types that a release supports in this region.
    pub fn instance_types(&self, release: &str) -> Result<Vec<String>, RequestFailure> {
        let request = self.client.list_supported_instance_types().release_label(release);
        let mut pages = request.into_paginator().send();
        let pages = self.pages("ListSupportedInstanceTypes", None, async || pages.next().await)?;
        let types = pages.iter().flat_map(|page| page.supported_instance_types());
        Ok(types.filter_map(|listed| listed.r#type.clone()).collect())
    }

    /// All pages of a listing, up to the limit.
    fn pages<T, E>(
        &self,
        action: &'static str,
        about: Option<&str>,
        mut next: impl AsyncFnMut() -> Option<Result<T, SdkError<E>>>,
    ) -> Result<Vec<T>, RequestFailure>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        SdkError<E>: RequestId,
    {
        let mut pages = Vec::new();
        for _ in 0..PAGES_MAX {
            let Some(page) = self.runtime.block_on(next()) else { break };
            pages.push(page.map_err(|error| explain(action, about, &error))?);
        }
        Ok(pages)
    }

    /// Creates a cluster and returns its id. Sent once, except if EMR refuses it because of its rate and `may_send` holds.
    pub fn create(
        &self,
        request: &Value,
        may_send: &dyn Fn() -> bool,
    ) -> Result<Created<String>, RequestFailure> {
        self.create_by("RunJobFlow", None, may_send, || async {
            let sent = self.once.run_job_flow().customize().mutate_request(planned(request)).send();
            sent.await.map(|answer| answer.job_flow_id().map(str::to_owned))
        })
    }

    /// Adds steps to a cluster and returns their ids. Sent once, except if EMR refuses it because of its rate and
    /// `may_send` holds.
    pub fn add_steps(
        &self,
        cluster: &str,
        steps: &[Value],
        may_send: &dyn Fn() -> bool,
    ) -> Result<Created<Vec<String>>, RequestFailure> {
        let request = add_job_flow_steps(cluster, steps);
        self.create_by("AddJobFlowSteps", Some(cluster), may_send, || async {
            let sent = self.once.add_job_flow_steps().customize().mutate_request(planned(&request)).send();
            sent.await.map(|answer| answer.step_ids.filter(|ids| !ids.is_empty()))
        })
    }

    /// Cancels steps. A running step is stopped. Returns a line per step that EMR refuses to cancel.
    pub fn cancel_steps(&self, cluster: &str, steps: &[String]) -> Result<Vec<String>, RequestFailure> {
        let request = self.client.cancel_steps().cluster_id(cluster).set_step_ids(Some(steps.to_vec()));
        let request = request.step_cancellation_option(StepCancellationOption::TerminateProcess);
        let answer = self.runtime.block_on(request.send());
        let answer = answer.map_err(|error| explain("CancelSteps", Some(cluster), &error))?;
        let refused = |info: &CancelStepsInfo| {
            let is_refused = info.status() == Some(&CancelStepsRequestStatus::Failed);
            let (step, why) = (info.step_id().unwrap_or_default(), info.reason().unwrap_or_default());
            is_refused.then(|| format!("{step}: {why}"))
        };
        Ok(answer.cancel_steps_info_list().iter().filter_map(refused).collect())
    }

    /// Ends a cluster. EMR accepts this for a cluster that has ended.
    pub fn terminate(&self, cluster: &str) -> Result<(), RequestFailure> {
        let request = self.client.terminate_job_flows().job_flow_ids(cluster);
        let answer = self.runtime.block_on(request.send());
        answer.map(drop).map_err(|error| explain("TerminateJobFlows", Some(cluster), &error))
    }

    /// Sends a request that creates something. A request refused because of its rate had no effect and is sent
    /// again, a limited number of times.
    fn create_by<T, E, F>(
        &self,
        action: &'static str,
        cluster: Option<&str>,
        may_send: &dyn Fn() -> bool,
        send: impl Fn() -> F,
    ) -> Result<Created<T>, RequestFailure>
    where
        F: Future<Output = Result<Option<T>, SdkError<E>>>,
        E: ProvideErrorMetadata + std::error::Error + 'static,
        SdkError<E>: RequestId,
    {
        let mut pause = FIRST_PAUSE;
        for tries in 1.. {
            let failure = match self.runtime.block_on(send()) {
                Ok(Some(created)) => return Ok(Created::Confirmed(created)),
                Ok(None) => return Ok(Created::Unknown(incomplete(action, "id"))),
                Err(error) => explain(action, cluster, &error),
            };
            match failure.kind {
                Kind::Throttled if tries < TRIES => {
                    thread::sleep(pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                    if !may_send() {
                        return Err(failure);
                    }
                }
                Kind::Unavailable => return Ok(Created::Unknown(failure)),
                _ => return Err(failure),
            }
        }
        unreachable!("the loop ends after {TRIES} tries")
    }
}

/// Replaces the body of a request, before it is signed, by that of the plan, so that what was planned is sent.
fn planned(request: &Value) -> impl Fn(&mut HttpRequest) + Send + Sync + 'static {
    let body = request.to_string();
    move |sent| {
        sent.headers_mut().insert("content-length", body.len().to_string());
        *sent.body_mut() = SdkBody::from(body.as_str());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_request_of_a_plan_is_sent_as_it_is() {
        let request = json!({ "Name": "é", "Steps": [] });
        let mut sent = HttpRequest::new(SdkBody::from("{}"));
        sent.headers_mut().insert("content-length", "2");
        planned(&request)(&mut sent);
        assert_eq!(sent.body().bytes(), Some(request.to_string().as_bytes()));
        assert_eq!(sent.headers().get("content-length"), Some("24"));
    }
}
