//! The older generations of a program, for the commands: which there are, and which one a person means.

use crate::adopt::take_over;
use crate::decision::Load;
use crate::encryption::unlock;
use crate::error::Error;
use crate::futex;
use crate::meta::Meta;
use crate::orphans::{is_alive, is_resumable};
use crate::program_folder::ProgramFolder;
use crate::progress::Bar;
use crate::stores::StorePlace;
use outlast_archive::{Archive, Kept};
use outlast_image::control::{go_back, went_back};
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant, SystemTime};

/// How long going back may take: gigabytes are decompressed twice.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long nothing of a program may be there before nobody is expected to come any more.
const SUCCESSION: Duration = Duration::from_secs(5);
/// How often somebody looks whether there is still a supervisor to wait for.
const PULSE: Duration = Duration::from_millis(50);

/// What a person calls a generation by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Number(u64),
    /// The newest that is at least so old.
    Age(Duration),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let age = || humantime::parse_duration(text).map(Self::Age);
        let number = text.parse().map(Self::Number);
        number.or_else(|_| age()).map_err(|_| "write the number of a generation, or an age such as 30s or 5m".into())
    }
}

/// How long ago the program was in that state.
pub fn age(kept: &Kept) -> Duration {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.saturating_sub(Duration::from_micros(kept.time_us))
}

/// What is kept of a program, the oldest first.
pub fn list(folder: &ProgramFolder) -> Result<Vec<Kept>, Error> {
    let meta = Meta::read(folder)?;
    let stores = StorePlace::of(folder, meta.store.as_ref().map(|path| path.to_path()).as_deref())?;
    let kept = Archive::list(&stores.archive()?).map_err(|error| Error::Generation(folder.name().into(), error))?;
    match kept.is_empty() && meta.options.generations.is_none() {
        true => Err(Error::NoGenerations(folder.name().into())),
        false => Ok(kept),
    }
}

/// The number of the generation that a person means.
pub fn choose(name: &str, kept: &[Kept], wanted: Wanted) -> Result<u64, Error> {
    let found = match wanted {
        Wanted::Number(number) => kept.iter().find(|kept| kept.number == number),
        Wanted::Age(wanted) => kept.iter().rev().find(|kept| age(kept) >= wanted),
    };
    let words = || match wanted {
        Wanted::Number(number) => number.to_string(),
        Wanted::Age(age) => format!("one that is {} old", humantime::format_duration(age)),
    };
    found.map(|kept| kept.number).ok_or_else(|| none_of(name, kept, &words()))
}

/// Says which generations there are.
pub fn none_of(name: &str, kept: &[Kept], wanted: &str) -> Error {
    let age = |kept: &Kept| humantime::format_duration(Duration::from_secs(age(kept).as_secs())).to_string();
    let what = match kept {
        [] => "none yet".into(),
        [only] => format!("only number {}, {} old", only.number, age(only)),
        [first, .., last] => {
            let count = kept.len();
            format!("{count}, from number {}, {} old, to {}, {} old", first.number, age(first), last.number, age(last))
        }
    };
    Error::NoSuchGeneration(name.into(), format!("{what}, but not {wanted}"))
}

/// For whoever waits until a program is in that state.
pub(crate) fn bar(folder: &ProgramFolder, number: u64) -> Bar {
    let kept = list(folder).unwrap_or_default().into_iter().find(|kept| kept.number == number);
    Bar::of("going back", kept.map_or(0, |kept| kept.pages))
}

/// Has a program go back. True: it runs; false: it did not run, and is to be resumed. `key`: where its key file is, if not where
/// it was; of one that runs, the supervisor has it.
pub fn rewind(
    folder: &ProgramFolder,
    number: u64,
    key: Option<&Path>,
    load: Load<'_>,
    quietly: bool,
) -> Result<bool, Error> {
    let name = folder.name();
    let bar = || if quietly { Bar::none() } else { bar(folder, number) };
    let session = folder.open_session().map_err(|_| Error::NothingLeft(name.into()))?;
    let meta = Meta::read(folder)?;
    if !meta.supervisor.is_alive() && !is_alive(&session) {
        if !is_resumable(&session) && meta.going_back.is_none() {
            return Err(Error::NothingLeft(name.into()));
        }
        let mut supervisor = take_over(name)?.supervise(session, load)?;
        unlock(&mut supervisor.stores, &mut supervisor.meta, key)?;
        supervisor.bar = bar();
        return supervisor.go_back_at_rest(number).map(|()| false);
    }
    let control = session.control();
    let word = &control.go_back;
    if word.compare_exchange(go_back::NONE, go_back::TAKEN, AcqRel, Acquire).is_err() {
        return Err(Error::NotNow(name.into()));
    }
    control.go_back_to.store(number, Release);
    word.store(go_back::ASKED, Release);
    futex::wake(word);
    let (asked, mut seen, bar) = (Instant::now(), Instant::now(), bar());
    while word.load(Acquire) == go_back::ASKED {
        bar.at(control.progress.load(Acquire).into());
        futex::wait(word, go_back::ASKED, PULSE);
        if is_alive(&session) || Meta::read(folder).is_ok_and(|meta| meta.supervisor.is_alive()) {
            seen = Instant::now();
        }
        let is_over = !folder.has("session") || seen.elapsed() > SUCCESSION || asked.elapsed() > PATIENCE;
        if is_over && word.compare_exchange(go_back::ASKED, go_back::NONE, AcqRel, Acquire).is_ok() {
            return Err(Error::NotRunning(name.into()));
        }
    }
    drop(bar);
    match control.went_back.load(Acquire) {
        went_back::DONE => Ok(true),
        went_back::MISSING => Err(none_of(name, &list(folder)?, &number.to_string())),
        went_back::DAMAGED => Err(Error::Generation(name.into(), outlast_archive::ArchiveError::Damaged(number))),
        went_back::NO_KEY => Err(Error::KeyMissing(name.into())),
        went_back::NOT_NOW => Err(Error::NotNow(name.into())),
        _ => Err(Error::NotBack(name.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_generation_and_a_time_is_an_age() {
        assert_eq!("7".parse(), Ok(Wanted::Number(7)));
        assert_eq!("30s".parse(), Ok(Wanted::Age(Duration::from_secs(30))));
        assert_eq!("1h 5m".parse(), Ok(Wanted::Age(Duration::from_secs(3900))));
        for wrong in ["", "-1", "7x", "yesterday"] {
            assert!(wrong.parse::<Wanted>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_age_means_the_newest_that_is_as_old() {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
        let kept = |number, age: u64| Kept {
            number,
            time_us: now - age * 1_000_000,
            seq: 0,
            pages: 0,
            bytes: 0,
            encrypted: false,
        };
        let all = [kept(1, 100), kept(4, 50), kept(5, 10)];
        let choose = |wanted: &str| choose("it", &all, wanted.parse().unwrap());
        assert_eq!(choose("30s").unwrap(), 4);
        assert_eq!(choose("5s").unwrap(), 5);
        assert_eq!(choose("1").unwrap(), 1);
        let told = choose("1h").unwrap_err().to_string();
        assert!(told.contains("3, from number 1") && told.contains("not one that is 1h old"), "{told}");
        assert!(choose("2").unwrap_err().to_string().contains("not 2"));
    }
}
