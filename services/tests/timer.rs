//! Periodic timers through micro-reboots.

mod support;

use outlast_glue_rt::{CallError, System};
use outlast_services::stubs::timer::Client;
use outlast_services::timer::now;
use support::{start, while_killed, Chance};

#[test]
fn no_period_is_lost_or_counted_twice_while_the_component_is_killed() {
    const PERIOD: u64 = 700_000;
    let mut system = System::new();
    let handle = start(&mut system, "timer");
    let client = Client::new(handle.grant().expect("a channel").open().expect("a channel"));
    let begun = now();
    let timer = client.timer_create(begun, PERIOD).expect("a timer");
    let mut waited = 0;
    let mut chance = Chance::new();
    let ((), kills) = while_killed(&handle, &mut chance, || {
        while waited < 200 || handle.deaths().0 < 15 {
            let before = (now() - begun) / PERIOD;
            let (_, passed) = client.timer_wait(timer).expect("a period");
            let after = (now() - begun) / PERIOD;
            waited += u64::from(passed);
            assert!(passed > 0 && before <= waited && waited <= after, "{before} <= {waited} <= {after}");
        }
    });
    println!("{kills} kills, {waited} periods");
    client.timer_remove(timer).expect("ours");
    assert!(matches!(client.timer_wait(timer), Err(CallError::Unknown(_))));
    assert_eq!(client.timer_create(0, 0), Err(CallError::Service(libc::EINVAL)));
}
