use super::*;
use berth_engine::LeaseStart;
use berth_file::job::{self, Defaults, Models};
use berth_model::{Bytes, Cpu, LeaseId, Policy, Share, Slice, Time};
use std::collections::BTreeSet;

fn create(file: &str, tasks: u32, gpus: u32) -> CreatePod {
    let parsed = job::read(file).unwrap();
    let defaults = Defaults {
        user: "ada".into(),
        team: "nlp".into(),
        project: "default".into(),
        classes: BTreeMap::new(),
        policy: Policy::default(),
        models: Models::new([(Name::new("H100-80GB"), Bytes::gib(80))]),
        levels: Vec::new(),
        abilities: job::Abilities { images: true, ..job::Abilities::default() },
        logs: job::LogLimits::default(),
    };
    let (request, _) = job::lower(&parsed.file, &defaults, Time(0)).unwrap();
    let run = request.workload.run().unwrap().clone();
    let slice = |gpu| Slice { gpu: gpu + 4, share: Share::Whole };
    let lease = LeaseId { job: JobId::new(17), task: 1, attempt: 2 };
    let start = LeaseStart {
        lease,
        user: "ada".to_owned(),
        team: "nlp".to_owned(),
        name: "train".to_owned(),
        project: "default".to_owned(),
        experiment: String::new(),
        submitted: Time(0),
        run,
        slices: (0..gpus).map(slice).collect(),
        node: "n1".to_owned(),
        tasks,
        port: None,
        cpu: Some(Cpu::cores(8)),
        memory: Some(Bytes::gib(32)),
        ends_at: None,
        runs_for: None,
        resume_from: None,
    };
    let namespace = "berth-nlp".to_owned();
    let has_secret = !start.run.secrets.is_empty() || start.run.is_fetched();
    let secret = has_secret.then(|| "sealed".to_owned());
    let container = job::Container { image: "i".to_owned(), namespace, pull_secrets: Vec::new() };
    let devices = (gpus > 0).then(|| ("nvidia.com/gpu".to_owned(), gpus));
    CreatePod {
        start,
        container,
        secret,
        devices: devices.into_iter().collect(),
        gpus: None,
        data_in_use: BTreeSet::from(["audio/0b.dir".to_owned()]),
        at: Time(1_700_000_000_000),
    }
}

fn variable(pod: &Value, name: &str) -> Value {
    let env = pod["spec"]["containers"][0]["env"].as_array().unwrap();
    env.iter().find(|one| one["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn an_image_is_pulled_with_the_secrets_that_the_job_names() {
    let mut create = create("run: x", 1, 0);
    let made = |create: &CreatePod| pod(create, &PodSettings::default(), None, "berth");
    assert!(made(&create)["spec"]["imagePullSecrets"].is_null(), "those of the account count");
    create.container.pull_secrets = vec!["registry".to_owned()];
    assert_eq!(
        made(&create)["spec"]["imagePullSecrets"],
        serde_json::json!([{ "name": "registry" }])
    );
}

#[test]
fn a_task_finds_its_peers_its_rank_and_its_gpus() {
    let create = create("run: python train.py\nlaunch: ranks\ngpus: 8\nnodes: 2", 2, 8);
    let pod = pod(&create, &PodSettings::default(), None, "berth");
    assert_eq!(pod["metadata"]["name"], "train-j17-2-1");
    assert_eq!(pod["spec"]["nodeName"], "n1");
    assert_eq!(
        (&pod["spec"]["hostname"], &pod["spec"]["subdomain"]),
        (&json!("task-1"), &json!("train-j17"))
    );
    let value = |name: &str| variable(&pod, name)["value"].clone();
    assert_eq!(value("MASTER_ADDR"), "task-0.train-j17.berth-nlp.svc");
    assert_eq!(value("NODE_RANK"), "1");
    assert_eq!(value("WORLD_SIZE"), "16");
    assert_eq!(value("BERTH_GPUS"), "0,1,2,3,4,5,6,7");
    assert_eq!(value("BERTH_ATTEMPT"), "2");
    assert_eq!(value("CUDA_VISIBLE_DEVICES"), Value::Null, "the node gives the GPUs");
    assert_eq!(value("BERTH_CHECKPOINT_DIR"), Value::Null, "nothing would keep it");
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"], "8");
    assert_eq!(container["resources"]["requests"]["cpu"], "8000m");
    assert_eq!(service(&create).unwrap()["spec"]["clusterIP"], "None");
}

#[test]
fn a_secret_is_named_and_nowhere_written_and_dollars_stay_dollars() {
    let file = "run: echo $(hostname) $HOME\nsecrets: {TOKEN: hf, RANK: hf}\nlaunch: ranks\nenv: {A: $(B)}";
    let create = create(file, 1, 0);
    let pod = pod(&create, &PodSettings::default(), None, "berth");
    let by = json!({ "secretKeyRef": { "name": "sealed", "key": "TOKEN" } });
    assert_eq!(variable(&pod, "TOKEN")["valueFrom"], by);
    assert_eq!(variable(&pod, "RANK")["value"], "1", "a job cannot set its own rank");
    assert_eq!(variable(&pod, "A")["value"], "$$(B)");
    let command = pod["spec"]["containers"][0]["command"].as_array().unwrap();
    assert_eq!(command.last().unwrap(), "echo $$(hostname) $$HOME");
    let made = Meta { name: "train-j17-2-1".into(), uid: "7".into(), ..Meta::default() };
    let values = [("hf".to_owned(), "s3cret".to_owned())].into();
    let secret = secret(&create, &made, "sealed", &values, BTreeMap::new());
    assert_eq!(secret["stringData"]["TOKEN"], "s3cret");
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "7");
    assert_eq!(pod["metadata"]["annotations"][SECRET], "sealed");
    assert!(!pod.to_string().contains("s3cret"));
    assert_eq!(service(&create), None, "it is alone");
}

#[test]
fn what_is_saved_lies_in_the_claim_and_is_found_by_the_next_attempt() {
    let file = "run: x\nworkdir: /w\nvolumes: {/data: c4, /out: shared}\ncheckpoint: {path: /ckpt}";
    let mut create = create(file, 1, 1);
    create.start.resume_from = Some(JobId::new(9));
    let settings = PodSettings { checkpoints: Some("shared".to_owned()), ..PodSettings::default() };
    let pod = pod(&create, &settings, None, "berth");
    assert_eq!(variable(&pod, "BERTH_CHECKPOINT_DIR")["value"], "/ckpt");
    assert_eq!(variable(&pod, "BERTH_RESUME_FROM")["value"], RESUME);
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["workingDir"], "/w");
    let mounts = container["volumeMounts"].as_array().unwrap();
    let at = |path: &str| mounts.iter().find(|one| one["mountPath"] == path).unwrap();
    assert_eq!(at("/out")["name"], at("/ckpt")["name"], "one claim is one volume");
    assert_eq!(at("/ckpt")["subPath"], "berth/17");
    assert_eq!(at(RESUME)["subPath"], "berth/9");
    assert_eq!(at("/dev/shm")["name"], "shm");
    assert_eq!(pod["spec"]["volumes"].as_array().unwrap().len(), 4);
}

#[test]
fn a_pod_with_a_fraction_asks_for_no_device_and_is_told_its_gpu() {
    let file = "run: x\ngpus: 0.5\nenv: {NVIDIA_VISIBLE_DEVICES: all}";
    let mut create = create(file, 1, 0);
    create.start.slices = vec![Slice { gpu: 3, share: Share::Fraction(berth_model::Milli(500)) }];
    create.gpus = Some("GPU-1".to_owned());
    let pod = pod(&create, &PodSettings::default(), None, "berth");
    let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits["nvidia.com/gpu"], Value::Null, "another pod holds it");
    let env = pod["spec"]["containers"][0]["env"].as_array().unwrap();
    let visible = env.iter().filter(|one| one["name"] == "NVIDIA_VISIBLE_DEVICES");
    let visible: Vec<&Value> = visible.map(|one| &one["value"]).collect();
    assert_eq!(visible, ["GPU-1"], "a job cannot choose its GPU by a variable");
    assert_eq!(variable(&pod, "CUDA_VISIBLE_DEVICES")["value"], "GPU-1", "as on a machine");
    assert_eq!(variable(&pod, "BERTH_GPUS")["value"], "0");
    assert_eq!(pod["metadata"]["annotations"][gpu_sharing::GPUS], "GPU-1");
    assert_eq!(pod["spec"]["tolerations"], tolerations());
}

#[test]
fn a_pod_asks_for_pieces_of_gpus_by_the_resource_they_have_on_its_node() {
    let mut create = create("run: x\ngpus: H100/1g.10gb:2\nlaunch: ranks", 1, 2);
    create.devices = [("nvidia.com/mig-1g.10gb".to_owned(), 2)].into();
    let pod = pod(&create, &PodSettings::default(), None, "berth");
    let resources = &pod["spec"]["containers"][0]["resources"];
    for amounts in [&resources["limits"], &resources["requests"]] {
        assert_eq!(amounts["nvidia.com/mig-1g.10gb"], "2");
        assert_eq!(amounts["nvidia.com/gpu"], Value::Null);
    }
    assert_eq!(variable(&pod, "NVIDIA_VISIBLE_DEVICES"), Value::Null, "the node gives them");
    assert_eq!(variable(&pod, "BERTH_GPUS")["value"], "0,1");
    assert_eq!(variable(&pod, "WORLD_SIZE")["value"], "2");
}

const CODE_ID: &str = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

fn fetch(certificate: Option<&str>) -> Fetch {
    let (image, url) = ("berth:1".to_owned(), "https://berth.berth.svc:7117".to_owned());
    Fetch { image, url, certificate: certificate.map(PathBuf::from) }
}

#[test]
fn a_container_before_the_command_fetches_the_code_into_the_folder_that_both_share() {
    let mut create = create(&format!("run: python train.py\ncode: {CODE_ID}"), 1, 1);
    create.start.memory = Some(Bytes::mib(64));
    let pod = pod(&create, &PodSettings::default(), Some(&fetch(None)), "berth");
    let before = pod["spec"]["initContainers"].as_array().unwrap();
    let [init] = &before[..] else { panic!("{before:?}") };
    assert_eq!(init["image"], "berth:1");
    assert_eq!(init["args"], json!(["fetch-code", "nlp", CODE_ID, "/berth/code"]));
    let env = json!([
        { "name": "BERTH_URL", "value": "https://berth.berth.svc:7117" },
        { "name": "BERTH_TOKEN",
          "valueFrom": { "secretKeyRef": { "name": "sealed", "key": "berth.fetch-token" } } },
    ]);
    assert_eq!(init["env"], env);
    assert_eq!(init["securityContext"]["runAsNonRoot"], true);
    assert_eq!(init["terminationMessagePolicy"], "FallbackToLogsOnError");
    let main = &pod["spec"]["containers"][0];
    let shared = json!({ "name": "berth", "mountPath": "/berth" });
    assert_eq!(init["volumeMounts"], json!([shared]));
    assert!(main["volumeMounts"].as_array().unwrap().contains(&shared));
    assert_eq!(main["workingDir"], "/berth/code");
    assert_eq!(variable(&pod, "BERTH_TOKEN"), Value::Null, "the command gets no token");
    let (asks, of) = (&init["resources"], &main["resources"]["requests"]);
    assert_eq!(
        (&asks["requests"]["cpu"], &asks["requests"]["memory"]),
        (&of["cpu"], &of["memory"])
    );
    assert_eq!(asks["limits"]["memory"], Bytes::mib(256).0.to_string(), "unpacking needs some");
    assert_eq!(asks["requests"]["nvidia.com/gpu"], Value::Null);
}

#[test]
fn data_is_fetched_into_a_volume_that_the_command_cannot_write_to() {
    let hash = format!("{}.dir", "0a".repeat(16));
    let data = format!("data: {{/data/c4: 'dvc:c4@v3#{hash}', /old: claim}}");
    let create = create(&format!("run: x\n{data}"), 1, 0);
    let pod = pod(&create, &PodSettings::default(), Some(&fetch(None)), "berth");
    let init = &pod["spec"]["initContainers"][0];
    let wanted = format!("dvc:c4@v3#{hash}=/berth-data/0");
    assert_eq!(init["args"], json!(["fetch-code", "nlp", "--data", wanted]));
    assert_eq!(init["volumeMounts"][1], json!({ "name": "data", "mountPath": "/berth-data" }));
    let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
    let seen = json!({ "name": "data", "mountPath": "/data/c4", "subPath": "0", "readOnly": true });
    assert!(mounts.contains(&seen), "{mounts:?}");
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    assert!(volumes.contains(&json!({ "name": "data", "emptyDir": {} })), "{volumes:?}");
}

#[test]
fn data_that_nodes_keep_is_mounted_from_the_node_by_its_team_and_hash() {
    let hash = format!("{}.dir", "0a".repeat(16));
    let create = create(&format!("run: x\ndata: {{/data/c4: 'dvc:c4@v3#{hash}'}}"), 1, 0);
    let kept = NodeData { path: "/var/lib/berth-data".to_owned(), most: Bytes::gib(1) };
    let settings = PodSettings { node_data: Some(kept), ..PodSettings::default() };
    let pod = pod(&create, &settings, Some(&fetch(None)), "berth");
    let init = &pod["spec"]["initContainers"][0];
    let wanted = format!("dvc:c4@v3#{hash}=/berth-data/trees/nlp/{hash}");
    let flags = ["--cache", "/berth-data", "--cache-size", "1073741824"];
    let rest = ["--cache-since", "1700000000000", "--in-use", "audio/0b.dir"];
    let mut args = vec!["fetch-code", "nlp", "--data", &wanted];
    args.extend(flags.into_iter().chain(rest));
    assert_eq!(init["args"], json!(args));
    assert_eq!(init["securityContext"]["runAsUser"], 0, "the folder is the node's");
    assert_eq!(init["securityContext"]["capabilities"], json!({ "drop": ["ALL"] }));
    let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
    let seen = json!({ "name": "data", "mountPath": "/data/c4",
                       "subPath": format!("trees/nlp/{hash}"), "readOnly": true });
    assert!(mounts.contains(&seen), "{mounts:?}");
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let folder = json!({ "path": "/var/lib/berth-data", "type": "DirectoryOrCreate" });
    assert!(volumes.contains(&json!({ "name": "data", "hostPath": folder })), "{volumes:?}");
    // A job without data does not touch the node.
    let plain = self::create(&format!("run: x\ncode: {CODE_ID}"), 1, 0);
    let plain = super::pod(&plain, &settings, Some(&fetch(None)), "berth");
    assert!(!plain.to_string().contains("berth-data"), "{plain}");
    assert_eq!(plain["spec"]["initContainers"][0]["securityContext"]["runAsNonRoot"], true);
}

#[test]
fn a_workdir_is_a_folder_in_the_code_and_a_whole_path_stays_what_it_is() {
    for (workdir, expect) in [("conf/a", "/berth/code/conf/a"), ("/data", "/data")] {
        let create = create(&format!("run: x\ncode: {CODE_ID}\nworkdir: {workdir}"), 1, 0);
        let pod = pod(&create, &PodSettings::default(), Some(&fetch(None)), "berth");
        assert_eq!(pod["spec"]["containers"][0]["workingDir"], expect);
    }
    let pod = pod(&create("run: x", 1, 0), &PodSettings::default(), None, "berth");
    assert_eq!(pod["spec"]["initContainers"], Value::Null);
    assert_eq!(pod["spec"]["containers"][0]["workingDir"], Value::Null, "the image's own");
}

#[test]
fn only_what_fetches_the_code_sees_the_certificates_and_the_token_is_in_the_secret_alone() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("tls.crt");
    let pem = "-----BEGIN CERTIFICATE-----\nb3du\n-----END CERTIFICATE-----\n";
    std::fs::write(&certificate, pem).unwrap();
    let fetch = fetch(certificate.to_str());
    let create = create(&format!("run: x\ncode: {CODE_ID}\nsecrets: {{HF: hf}}"), 1, 0);
    let pod = pod(&create, &PodSettings::default(), Some(&fetch), "berth");
    let init = &pod["spec"]["initContainers"][0];
    assert_eq!(init["env"][2], json!({ "name": "BERTH_CA", "value": "/berth-trust/ca.pem" }));
    let trust = json!({ "name": "fetch-code", "mountPath": "/berth-trust", "readOnly": true });
    assert_eq!(init["volumeMounts"][1], trust);
    let volume = pod["spec"]["volumes"].as_array().unwrap().last().unwrap();
    let items = json!([{ "key": "berth.fetch-ca", "path": "ca.pem" }]);
    assert_eq!(volume["secret"], json!({ "secretName": "sealed", "items": items }));
    let mounts = pod["spec"]["containers"][0]["volumeMounts"].to_string();
    assert!(!mounts.contains("fetch-code"), "{mounts}");

    let tokens = berth_service::job_token::JobTokens::new(b"a key");
    let sealed = fetch::sealed(&create, &fetch, &tokens).unwrap();
    let made = Meta { name: "train-j17-2-1".into(), uid: "7".into(), ..Meta::default() };
    let values = [("hf".to_owned(), "s3cret".to_owned())].into();
    let secret = secret(&create, &made, "sealed", &values, sealed);
    assert_eq!(secret["stringData"]["berth.fetch-ca"], pem);
    assert_eq!(secret["stringData"]["HF"], "s3cret");
    let token = secret["stringData"]["berth.fetch-token"].as_str().unwrap();
    let read = tokens.read(token).unwrap().unwrap();
    assert_eq!(
        (read.lease, read.reach),
        (create.start.lease, berth_service::job_token::Reach::Code)
    );
    assert!(!pod.to_string().contains(token));
}

#[test]
fn what_setup_makes_is_kept_for_the_same_code() {
    let settings = PodSettings { checkpoints: Some("shared".to_owned()), ..PodSettings::default() };
    let kept = |code: &str| {
        let create = create(&format!("run: x\nsetup: make\n{code}"), 1, 0);
        let pod = pod(&create, &settings, Some(&fetch(None)), "berth");
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap().clone();
        mounts.into_iter().find(|one| one["mountPath"] == SETUP).unwrap()["subPath"].clone()
    };
    let other = format!("code: sha256:{}", "0".repeat(64));
    let (none, one, other) = (kept(""), kept(&format!("code: {CODE_ID}")), kept(&other));
    assert!(none != one && one != other && none != other);
    assert_eq!(one, kept(&format!("code: {CODE_ID}")));
}

#[test]
fn the_client_of_mlflow_in_a_pod_finds_the_run_of_its_job_and_its_token_is_sealed() {
    let known = crate::options::FetchSettings {
        url: Some("http://berth.berth.svc:7117".to_owned()),
        ..crate::options::FetchSettings::default()
    };
    let settings = PodSettings { fetch: known, ..PodSettings::default() };
    let tokens = berth_service::job_token::JobTokens::new(b"a key");
    let create = Track::sealing(&create("run: python train.py", 1, 1), &settings.fetch);
    let pod = pod(&create, &settings, None, "berth");
    assert_eq!(variable(&pod, "MLFLOW_TRACKING_URI")["value"], "http://berth.berth.svc:7117");
    let run = berth_service::tracked_run::run_id(create.start.lease.job, create.start.submitted);
    assert_eq!(variable(&pod, "MLFLOW_RUN_ID")["value"], run);
    let key = &variable(&pod, "MLFLOW_TRACKING_TOKEN")["valueFrom"]["secretKeyRef"];
    assert_eq!(pod["metadata"]["annotations"][SECRET], key["name"]);
    let track = Track::of(&create, &settings.fetch).unwrap();
    let sealed = track.sealed(&create, &tokens);
    let token = tokens.read(&sealed[key["key"].as_str().unwrap()]).unwrap().unwrap();
    let expected = (create.start.lease, berth_service::job_token::Reach::Track);
    assert_eq!((token.lease, token.reach), expected);
}

#[test]
fn a_pod_whose_job_tracks_elsewhere_is_told_of_no_server() {
    let known = crate::options::FetchSettings {
        url: Some("http://berth.berth.svc:7117".to_owned()),
        ..crate::options::FetchSettings::default()
    };
    let settings = PodSettings { fetch: known, ..PodSettings::default() };
    for file in [
        "run: x\nenv: {MLFLOW_TRACKING_URI: 'http://elsewhere'}",
        "run: x\nsecrets: {MLFLOW_TRACKING_PASSWORD: mlflow}",
    ] {
        let before = create(file, 1, 0);
        let create = Track::sealing(&before, &settings.fetch);
        assert_eq!(create.secret, before.secret);
        let pod = pod(&create, &settings, None, "berth");
        assert_eq!(variable(&pod, "MLFLOW_RUN_ID"), Value::Null, "{file}");
    }
    let plain = pod(&create("run: x", 1, 0), &PodSettings::default(), None, "berth");
    assert_eq!(
        variable(&plain, "MLFLOW_RUN_ID"),
        Value::Null,
        "it is not known where pods reach it"
    );
}
