//! loom's locks with the interface of `parking_lot`.

use std::ops::{Deref, DerefMut};

#[derive(Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

/// Empty only while its condition is awaited.
pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect("loom poisons nothing")))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("held")
    }
}

#[derive(Default)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    #[track_caller]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect("held");
        guard.0 = Some(self.0.wait(held).expect("loom poisons nothing"));
    }

    #[track_caller]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    #[track_caller]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
