use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

fn connections(all: usize, per_address: usize, per_loopback: usize) -> Connections {
    Connections::new(ConnectionLimits { all, per_address, per_loopback, per_user: 3 })
}

fn seat(connections: &Connections, from: IpAddr, now: Instant) -> Arc<Seat> {
    Arc::new(connections.admit(from, now).expect("there is room"))
}

/// A request with the token of a user.
fn known(seat: &Arc<Seat>, user: &str) -> UnderWay {
    let under_way = seat.begin_request(false).expect("it is open");
    assert!(under_way.identify(user));
    under_way
}

/// Whether it was asked to close; asking takes the request away.
async fn has_to_go(seat: &Seat) -> bool {
    tokio::time::timeout(Duration::ZERO, seat.dismissed()).await.is_ok()
}

#[tokio::test]
async fn whoever_opens_too_many_displaces_their_own_oldest_half_sent_request() {
    let (connections, now) = (connections(100, 3, 50), Instant::now());
    let bobs = seat(&connections, BOB, now);
    let mut alices: Vec<_> = (0..3).map(|_| seat(&connections, ALICE, now)).collect();
    alices.push(seat(&connections, ALICE, now));
    let mut gone = Vec::new();
    for seat in &alices {
        gone.push(has_to_go(seat).await);
    }
    assert_eq!(gone, [true, false, false, false]);
    assert!(!has_to_go(&bobs).await, "another address does not pay for it");
    assert_eq!(connections.figures().displaced, 1);
}

#[tokio::test]
async fn a_request_of_a_known_user_is_never_displaced() {
    let (connections, now) = (connections(100, 2, 50), Instant::now());
    let streams = [seat(&connections, ALICE, now), seat(&connections, ALICE, now)];
    let under_way = streams.each_ref().map(|seat| known(seat, "kim"));
    assert_eq!(connections.admit(ALICE, now).unwrap_err(), Refusal::Address);
    connections.sweep(now + IDLE_TIMEOUT * 100);
    for stream in &streams {
        assert!(!has_to_go(stream).await);
    }
    drop(under_way);
    assert!(connections.admit(ALICE, now).is_ok(), "one that rests makes room");
    assert_eq!(connections.figures().refused_address, 1);
}

#[tokio::test]
async fn a_full_server_displaces_whoever_rests_longest_wherever_they_are() {
    let (connections, now) = (connections(3, 3, 3), Instant::now());
    let first = seat(&connections, ALICE, now);
    let second = seat(&connections, BOB, now);
    // It had a request meanwhile, so it rests for a shorter time than the second.
    drop(first.begin_request(false));
    let third = seat(&connections, HERE, now);
    let fourth = seat(&connections, HERE, now);
    let gone = [&first, &second, &third, &fourth];
    let mut went = Vec::new();
    for seat in gone {
        went.push(has_to_go(seat).await);
    }
    assert_eq!(went, [false, true, false, false]);
    let busy = [&first, &third, &fourth].map(|seat| known(seat, "kim"));
    assert_eq!(connections.admit(BOB, now).unwrap_err(), Refusal::All);
    drop(busy);
}

#[tokio::test]
async fn a_place_is_counted_until_its_socket_is_closed() {
    let (connections, now) = (connections(10, 10, 10), Instant::now());
    let seats: Vec<_> = (0..5).map(|_| seat(&connections, ALICE, now)).collect();
    assert_eq!(connections.figures().open, 5);
    connections.sweep(now + HEAD_TIMEOUT);
    assert_eq!(connections.figures().open, 5, "they have been asked, and have not gone yet");
    drop(seats);
    let table = connections.table();
    assert_eq!((table.rows.len(), table.open, table.origins.len()), (0, 0, 0));
    assert_eq!((table.unprotected.len(), table.unprotected_of.len()), (0, 0));
}

#[tokio::test]
async fn a_connection_that_sends_no_request_ends_whatever_it_sends() {
    let (connections, now) = (connections(10, 10, 10), Instant::now());
    let trickles = seat(&connections, ALICE, now);
    for second in 0..10 {
        trickles.traffic().read.fetch_add(1, Ordering::Relaxed);
        connections.sweep(now + Duration::from_secs(second));
        assert!(!has_to_go(&trickles).await, "after {second} s");
    }
    connections.sweep(now + HEAD_TIMEOUT);
    assert!(has_to_go(&trickles).await);
    assert_eq!(connections.figures().timeouts_head, 1);
}

#[tokio::test]
async fn half_a_request_after_a_whole_one_ends_as_soon() {
    let connections = connections(10, 10, 10);
    let seat = seat(&connections, ALICE, Instant::now());
    drop(seat.begin_request(false));
    let now = Instant::now();
    connections.sweep(now + HEAD_TIMEOUT);
    assert!(!has_to_go(&seat).await, "it may wait for its next request");
    seat.traffic().read.fetch_add(1, Ordering::Relaxed);
    connections.sweep(now + HEAD_TIMEOUT);
    connections.sweep(now + HEAD_TIMEOUT * 2);
    assert!(has_to_go(&seat).await);
}

#[tokio::test]
async fn a_slow_client_has_time_to_take_its_answer() {
    let connections = connections(10, 10, 10);
    let seat = seat(&connections, ALICE, Instant::now());
    drop(seat.begin_request(false));
    let now = Instant::now();
    for step in 1..5 {
        seat.traffic().written.fetch_add(1, Ordering::Relaxed);
        connections.sweep(now + IDLE_TIMEOUT * step);
        assert!(!has_to_go(&seat).await);
    }
    connections.sweep(now + IDLE_TIMEOUT * 5);
    assert!(has_to_go(&seat).await, "nothing has gone for as long as it may rest");
    assert_eq!(connections.figures().timeouts_idle, 1);
}

#[tokio::test]
async fn a_shell_is_no_http_any_more_and_is_left_alone() {
    let (connections, now) = (connections(1, 1, 1), Instant::now());
    let shell = seat(&connections, HERE, now);
    drop(shell.begin_request(false));
    shell.hand_over();
    connections.sweep(now + IDLE_TIMEOUT * 100);
    assert!(!has_to_go(&shell).await);
    assert_eq!(connections.admit(HERE, now).unwrap_err(), Refusal::Address, "it still counts");
    drop(shell);
    assert!(connections.admit(HERE, now).is_ok());
}

#[tokio::test]
async fn without_descriptors_what_rests_is_closed_and_the_rest_goes_on() {
    let (connections, now) = (connections(100, 100, 100), Instant::now());
    let busy = seat(&connections, ALICE, now);
    let request = known(&busy, "kim");
    let idle: Vec<_> = (0..SHED + 5).map(|_| seat(&connections, BOB, now)).collect();
    connections.shed();
    let mut gone = 0;
    for seat in &idle {
        gone += usize::from(has_to_go(seat).await);
    }
    assert_eq!(gone, SHED);
    assert!(!has_to_go(&busy).await);
    drop(request);
    assert!(idle[0].begin_request(false).is_none(), "no request begins on its way out");
}

#[tokio::test]
async fn a_request_without_a_token_protects_nothing_whatever_it_waits_for() {
    let (connections, now) = (connections(100, 100, 3), Instant::now());
    let pinned: Vec<_> = (0..3).map(|_| seat(&connections, HERE, now)).collect();
    let under_way: Vec<_> = pinned.iter().map(|seat| seat.begin_request(true)).collect();
    let honest = seat(&connections, HERE, now);
    assert!(has_to_go(&pinned[0]).await && !has_to_go(&pinned[1]).await);
    assert!(pinned[0].begin_request(true).is_none());
    let request = known(&honest, "kim");
    let late = under_way[0].as_ref().unwrap();
    assert!(!late.identify("kim"), "it went before its token was read, and is not carried out");
    let others: Vec<_> = (0..20).map(|_| seat(&connections, HERE, now)).collect();
    assert!(!has_to_go(&honest).await);
    drop((others, request, under_way, pinned, honest));
    let table = connections.table();
    assert_eq!((table.rows.len(), table.open, table.shares.len()), (0, 0, 0));
}

#[tokio::test]
async fn a_user_protects_no_more_than_their_share_and_leaves_room_to_others() {
    let (connections, now) = (connections(100, 100, 5), Instant::now());
    let seats: Vec<_> = (0..5).map(|_| seat(&connections, HERE, now)).collect();
    let mut streams: Vec<_> = seats.iter().map(|seat| known(seat, "greedy")).collect();
    let protected: Vec<bool> = streams.iter().map(UnderWay::is_protected).collect();
    assert_eq!(protected, [true, true, true, false, false]);
    let modest = seat(&connections, HERE, now);
    let request = known(&modest, "modest");
    assert!(request.is_protected() && has_to_go(&seats[3]).await);
    drop(streams.remove(0));
    assert!(known(&seats[4], "greedy").is_protected(), "a share comes back");
}

#[tokio::test]
async fn who_takes_nothing_of_an_answer_for_a_minute_has_to_go() {
    let connections = connections(10, 10, 10);
    let seat = seat(&connections, ALICE, Instant::now());
    let request = seat.begin_request(true).unwrap();
    assert!(request.identify("kim"));
    let (now, traffic) = (Instant::now(), seat.traffic());
    let at = |seconds| connections.sweep(now + Duration::from_secs(seconds));
    at(0);
    at(1_000);
    assert!(!has_to_go(&seat).await, "an answer that has nothing to give waits for the server");
    traffic.hold(7, 1);
    at(2_000);
    traffic.written.fetch_add(17, Ordering::Relaxed);
    at(2_059);
    assert!(!has_to_go(&seat).await);
    traffic.hold(7, 2);
    at(2_060);
    at(2_119);
    assert!(!has_to_go(&seat).await, "it took a part meanwhile");
    traffic.written.fetch_add(17, Ordering::Relaxed);
    at(2_120);
    traffic.hold(8, 1);
    assert!(has_to_go(&seat).await, "neither pings nor other answers are progress");
    assert_eq!(connections.figures().timeouts_stalled, 1);
    drop(request);
}

#[test]
fn addresses_of_one_network_count_together() {
    let of = |text: &str| Origin::of(text.parse().unwrap());
    assert_eq!(of("::1"), of("127.0.0.9"));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
}

#[test]
fn limits_leave_descriptors_to_everything_else() {
    let usual = ConnectionLimits::new(4_096, 256, 1 << 20);
    let expected =
        ConnectionLimits { all: 4_096, per_address: 256, per_loopback: 3_072, per_user: 512 };
    assert_eq!(usual, expected);
    let small = ConnectionLimits::new(4_096, 256, 256);
    assert_eq!(small, ConnectionLimits { all: 64, per_address: 64, per_loopback: 48, per_user: 8 });
    assert_eq!(ConnectionLimits::new(4_096, 256, 64).all, 16);
}
