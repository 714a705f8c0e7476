//! Memory that components share: granted, aliased and revoked, while the memory manager dies again and again.

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use outlast_glue_rt::{CallError, Handle, Mapped, System, Unusable};
use outlast_services::memory::{map, PAGE, READ, WRITE};
use outlast_services::stubs::memory::Client;
use support::{kill_instance, start, while_killed, Chance};

fn clients<const N: usize>(handle: &Handle) -> [Client; N] {
    std::array::from_fn(|_| Client::new(handle.grant().expect("a channel").open().expect("a channel")))
}

fn text(mapped: &Mapped) -> Result<[u8; 5], Unusable> {
    let mut bytes = [0; 5];
    mapped.read(0, &mut bytes).map(|()| bytes)
}

#[test]
fn what_one_client_writes_another_reads_until_it_is_revoked() {
    let mut system = System::new();
    let handle = start(&mut system, "memory");
    let [here, there, other] = clients(&handle);
    let (page, _) = here.mem_get(2).expect("memory");
    let mine = map(&here, page).expect("mine");
    mine.write(0, b"hello").expect("there");
    let to = there.mem_who().expect("a number");
    let alias = here.mem_alias(page, to, READ).expect("an alias");
    kill_instance(&handle);
    let theirs = map(&there, alias).expect("an alias of theirs");
    assert_eq!(text(&theirs), Ok(*b"hello"));
    mine.write(2 * PAGE - 5, b"world").expect("there");
    let mut end = [0; 5];
    theirs.read(2 * PAGE - 5, &mut end).expect("there");
    assert_eq!(&end, b"world");
    assert_eq!(theirs.write(0, b"no"), Err(Unusable::ReadOnly));
    assert_eq!(theirs.read(2 * PAGE - 4, &mut end), Err(Unusable::Outside));
    // A third client has nothing of it, and nobody gives more than there is.
    let refused = |errno| CallError::Refused(errno);
    assert_eq!(map(&other, alias).err(), Some(refused(libc::EPERM)));
    assert_eq!(other.mem_revoke(page), Err(refused(libc::EPERM)));
    assert_eq!(other.mem_alias(page, to, READ), Err(refused(libc::EPERM)));
    assert_eq!(there.mem_alias(alias, to, READ | WRITE), Err(CallError::Service(libc::EINVAL)));
    assert_eq!(here.mem_get(0).err(), Some(CallError::Service(libc::EINVAL)));
    assert_eq!(here.mem_get(1_000_000).err(), Some(CallError::Service(libc::EINVAL)));
    here.mem_revoke(alias).expect("ours");
    assert_eq!(text(&theirs), Err(Unusable::Revoked));
    assert_eq!(text(&mine), Ok(*b"hello"));
    assert!(map(&there, alias).is_err());
    // What another client closed is remembered until it is used.
    let alias = here.mem_alias(page, to, READ).expect("an alias");
    there.mem_revoke(alias).expect("in its hands");
    assert_eq!(here.count(), 2);
    kill_instance(&handle);
    assert_eq!(here.mem_revoke(alias), Err(refused(libc::EBADF)));
    assert_eq!(here.count(), 1);
    here.mem_revoke(page).expect("ours");
    assert_eq!(text(&mine), Err(Unusable::Revoked));
    assert_eq!(here.count(), 0);
}

#[test]
fn memory_that_one_may_only_read_is_not_got_to_write_by_mapping_it_oneself() {
    let mut system = System::new();
    let handle = start(&mut system, "memory");
    let [here, there] = clients(&handle);
    let (page, _) = here.mem_get(1).expect("memory");
    let alias = here.mem_alias(page, there.mem_who().expect("a number"), READ).expect("an alias");
    let (_, _, rights, memory) = there.mem_map(alias).expect("an alias of theirs");
    assert_eq!(rights, READ);
    let shared = |rights| {
        use std::os::fd::AsRawFd;
        // SAFETY: a new mapping of a file, left alone.
        unsafe { libc::mmap(std::ptr::null_mut(), PAGE, rights, libc::MAP_SHARED, memory.as_raw_fd(), 0) }
    };
    assert_eq!(shared(libc::PROT_READ | libc::PROT_WRITE), libc::MAP_FAILED);
    assert_ne!(shared(libc::PROT_READ), libc::MAP_FAILED);
}

/// A page, an alias of it, and an alias of that, in three hands; and the component knows none of them any more.
fn chain(handle: &Handle) -> ([Client; 3], [u64; 3], [Arc<Mapped>; 3]) {
    let all: [Client; 3] = clients(handle);
    let number = |client: &Client| client.mem_who().expect("a number");
    let (page, _) = all[0].mem_get(1).expect("memory");
    let alias = all[0].mem_alias(page, number(&all[1]), READ | WRITE).expect("an alias");
    let second = all[1].mem_alias(alias, number(&all[2]), READ).expect("an alias of an alias");
    let pages = [page, alias, second];
    let mapped = std::array::from_fn(|at| map(&all[at], pages[at]).expect("mapped"));
    mapped[1].write(0, b"words").expect("there");
    kill_instance(handle);
    (all, pages, mapped)
}

#[test]
fn who_closes_a_page_closes_all_aliases_of_it_though_the_component_knew_none_of_them() {
    let mut system = System::new();
    let handle = start(&mut system, "memory");
    let (all, [page, _, second], mapped) = chain(&handle);
    assert!(mapped.iter().all(|mapped| text(mapped) == Ok(*b"words")));
    all[0].mem_revoke(page).expect("ours");
    assert!(mapped.iter().all(|mapped| text(mapped) == Err(Unusable::Revoked)));
    kill_instance(&handle);
    assert!(map(&all[2], second).is_err(), "what was closed does not come back");
}

#[test]
fn without_d0_aliases_outlive_their_page() {
    let mut system = System::new();
    let handle = start(&mut system, "memory-without-d0");
    let (all, [page, _, _], mapped) = chain(&handle);
    all[0].mem_revoke(page).expect("ours");
    assert_eq!(text(&mapped[0]), Err(Unusable::Revoked));
    assert_eq!(text(&mapped[2]), Ok(*b"words"));
}

#[test]
fn an_alias_whose_maker_is_gone_is_revoked_with_its_page() {
    let mut system = System::new();
    let handle = start(&mut system, "memory");
    let ([first, second, third], [page, _, alias], mapped) = chain(&handle);
    drop(second);
    first.mem_revoke(page).expect("ours");
    assert_eq!(text(&mapped[2]), Err(Unusable::Revoked));
    assert!(map(&third, alias).is_err());
}

#[test]
fn aliases_back_and_forth_are_recovered_from_the_top() {
    let mut system = System::new();
    let handle = start(&mut system, "memory");
    let [here, there] = clients(&handle);
    let (me, them) = (here.mem_who().expect("a number"), there.mem_who().expect("a number"));
    let (page, _) = here.mem_get(1).expect("memory");
    let mut last = page;
    for depth in 0..6 {
        let (from, to) = if depth % 2 == 0 { (&here, them) } else { (&there, me) };
        last = from.mem_alias(last, to, READ | WRITE).expect("an alias");
    }
    for _ in 0..5 {
        kill_instance(&handle);
        let start = std::time::Instant::now();
        assert!(here.mem_map(last).is_ok());
        // A client that waited for itself would be given up after ten seconds.
        assert!(start.elapsed() < std::time::Duration::from_secs(9));
    }
    here.mem_revoke(page).expect("ours");
    assert!(here.mem_map(last).is_err());
}

/// What there is to be in a client's hands.
struct Model {
    holder: usize,
    maker: usize,
    of: u64,
    rights: u32,
    mapped: Option<Arc<Mapped>>,
}

#[test]
fn everybody_has_what_was_granted_and_nothing_that_was_revoked_while_the_component_is_killed() {
    const STEPS: u32 = 1_500;
    let mut system = System::new();
    let handle = start(&mut system, "memory");
    let all: [Client; 4] = clients(&handle);
    let numbers: Vec<u32> = all.iter().map(|client| client.mem_who().expect("a number")).collect();
    let mut chance = Chance::new();
    let mut chooser = chance.fork();
    let (counts, kills) = while_killed(&handle, &mut chance, || {
        let mut below = |bound: usize| chooser.below(bound as u64) as usize;
        let mut model: HashMap<u64, Model> = HashMap::new();
        // What is written at the beginning of each page that is no alias.
        let mut contents: HashMap<u64, [u8; 8]> = HashMap::new();
        let mut gone: Vec<(u64, Option<Arc<Mapped>>)> = Vec::new();
        let mut step = 0;
        while step < STEPS || handle.deaths().0 < 15 {
            step += 1;
            let ids: Vec<u64> = model.keys().copied().collect();
            let which = below(10);
            if ids.is_empty() || which == 0 && ids.len() < 24 {
                let holder = below(all.len());
                let (page, _) = all[holder].mem_get(1).expect("memory");
                let (maker, of, rights) = (holder, 0, READ | WRITE);
                model.insert(page, Model { holder, maker, of, rights, mapped: None });
                contents.insert(page, [0; 8]);
                continue;
            }
            let id = ids[below(ids.len())];
            let mut top = id;
            while model[&top].of != 0 {
                top = model[&top].of;
            }
            match which {
                0..=3 if ids.len() < 24 => {
                    let (from, to) = (model[&id].holder, below(all.len()));
                    let rights = [READ, READ | WRITE][below(2)] & model[&id].rights;
                    let alias = all[from].mem_alias(id, numbers[to], rights).expect("an alias");
                    model.insert(alias, Model { holder: to, maker: from, of: id, rights, mapped: None });
                }
                0..=7 => {
                    let page = model.get_mut(&id).expect("in the model");
                    let mapped = match &page.mapped {
                        Some(mapped) => mapped.clone(),
                        None => page.mapped.insert(map(&all[page.holder], id).expect("ours")).clone(),
                    };
                    let mut bytes = [0; 8];
                    mapped.read(0, &mut bytes).expect("there");
                    assert_eq!(bytes, contents[&top]);
                    let bytes = u64::from(step).to_le_bytes();
                    let written = mapped.write(0, &bytes);
                    assert_eq!(written.is_ok(), page.rights & WRITE != 0);
                    if written.is_ok() {
                        contents.insert(top, bytes);
                    }
                }
                8 => {
                    let who = [model[&id].holder, model[&id].maker][below(2)];
                    all[who].mem_revoke(id).expect("ours");
                    let mut closed = vec![id];
                    while let Some(one) = closed.pop() {
                        closed.extend(model.iter().filter(|(_, page)| page.of == one).map(|(id, _)| *id));
                        gone.push((one, model.remove(&one).expect("in the model").mapped));
                    }
                }
                _ => {
                    let Some((id, mapped)) = gone.get(below(gone.len().max(1))) else { continue };
                    assert!(mapped.as_ref().is_none_or(|mapped| text(mapped) == Err(Unusable::Revoked)));
                    assert!(all[below(all.len())].mem_map(*id).is_err());
                }
            }
        }
        (step, gone.len())
    });
    println!("{kills} kills, {} steps, {} revoked", counts.0, counts.1);
    assert!(counts.1 > 50);
}
