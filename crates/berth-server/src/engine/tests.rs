use super::*;

fn handle(stalled: Stalled) -> (Handle, mpsc::UnboundedReceiver<Input>) {
    let core = Core {
        state: State::new(),
        jobs: BTreeMap::new(),
        retries: BTreeSet::new(),
        forecast: None,
        plans: Plans::default(),
        stalled: Some(stalled),
    };
    let (inputs, taken) = mpsc::unbounded_channel();
    let (news, _) = broadcast::channel(1);
    let (_, tree) = watch::channel(Arc::new(Tree::of(&core.state)));
    (Handle::new(inputs, Arc::new(Mutex::new(core)), news, tree), taken)
}

fn nothing() -> Write {
    Write::unnoted(berth_store::Batch::default())
}

#[tokio::test]
async fn while_the_log_cannot_be_written_nothing_new_is_taken() {
    let stalled = Stalled { since: Time(7), why: "no room".to_owned(), full: true };
    let (handle, mut taken) = handle(stalled.clone());
    assert_eq!(handle.write(nothing()).await, Err(Refused::Stalled(stalled)));
    assert!(taken.try_recv().is_err());
}
