//! A headless browser, controlled through a pipe by Chrome's DevTools protocol: JSON messages, each followed by a
//! zero byte.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Time limit, longer than any response takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

pub struct Browser {
    process: Child,
    to: File,
    from: Receiver<Value>,
    n_calls: u64,
    session: Option<String>,
    /// Events that the browser has sent since the last page was opened.
    told: Vec<Value>,
    _folder: TempDir,
}

/// The Chromium that bootstrap has installed, otherwise that of the system.
pub fn chromium() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps/browser/chromium");
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        let names = ["chromium", "chromium-browser", "chromium-headless-shell", "google-chrome"];
        std::env::split_paths(&path)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|file| file.is_file())
    };
    if own.exists() { Some(own) } else { on_path() }
}

impl Browser {
    pub fn start(chromium: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [to, from] = ["to", "from"].map(|name| folder.path().join(name));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let libraries = chromium.with_file_name("lib");
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\""]).arg(chromium);
        // Containers do not support sandboxes, and have little shared memory.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-zygote", "--in-process-gpu"]);
        command.args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]);
        command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        command.env("TO", &to).env("FROM", &from).env("LD_LIBRARY_PATH", libraries);
        command.env("XDG_CACHE_HOME", folder.path());
        if chromium.with_file_name("fonts.conf").exists() {
            command.env("FONTCONFIG_PATH", chromium.with_file_name(""));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let to = File::options().write(true).open(to).unwrap();
        let mut from = BufReader::new(File::open(from).unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while from.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            process,
            to,
            from: messages,
            n_calls: 0,
            session: None,
            told: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Network", "Log", "Runtime"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser.call("Page.setLifecycleEventsEnabled", &json!({"enabled": true}));
        browser
    }

    /// Opens a file in a window of this size, with the colour scheme `light` or `dark`.
    pub fn open(&mut self, page: &Path, (width, height): (u32, u32), scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &features);
        self.told.clear();
        let url = format!("file://{}", page.display());
        let loader = self.call("Page.navigate", &json!({"url": url}))["loaderId"].clone();
        // The event may belong to the previous page.
        let is_loaded = |event: &Value| {
            event["method"] == "Page.lifecycleEvent"
                && event["params"]["name"] == "load"
                && event["params"]["loaderId"] == loader
        };
        while !self.told.iter().any(is_loaded) {
            let event = self.next();
            self.told.push(event);
        }
    }

    /// The value of a JavaScript expression. The page itself cannot run scripts.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// The addresses that the page has requested.
    pub fn requests(&self) -> Vec<&str> {
        let events = self.told.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        events.map(|event| event["params"]["request"]["url"].as_str().unwrap()).collect()
    }

    /// Warnings and errors of the browser.
    pub fn complaints(&self) -> Vec<&Value> {
        let is_complaint = |event: &&Value| {
            ["Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"]
                .contains(&event["method"].as_str().unwrap_or_default())
        };
        self.told.iter().filter(is_complaint).collect()
    }

    /// A picture of the page from its top, of at most this height, as PNG.
    pub fn picture(&mut self, height_max: u64) -> Vec<u8> {
        let size =
            self.value("[document.documentElement.clientWidth, document.documentElement.scrollHeight]");
        let height = size[1].as_u64().unwrap().min(height_max);
        let clip = json!({"x": 0, "y": 0, "width": size[0], "height": height, "scale": 1});
        let asked = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        STANDARD.decode(self.call("Page.captureScreenshot", &asked)["data"].as_str().unwrap()).unwrap()
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.n_calls += 1;
        let mut message = json!({"id": self.n_calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.next();
            if answer["id"] == self.n_calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.told.push(answer);
        }
    }

    fn next(&mut self) -> Value {
        self.from.recv_timeout(LIMIT).expect("the browser answers")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
