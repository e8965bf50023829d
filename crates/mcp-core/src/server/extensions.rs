use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

/// Values by their type, one of each. Cloning is cheap, and what is inserted into a clone is not in the original.
#[derive(Clone, Default)]
pub struct Extensions(Option<Arc<Map>>);

type Map = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

impl Extensions {
    /// Puts a value in, in the place of the one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        Arc::make_mut(self.0.get_or_insert_default()).insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of that type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

/// What they are may be secret.
impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map_or(0, |map| map.len());
        f.debug_struct("Extensions").field("count", &count).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_a_type_and_clones_go_their_own_way() {
        let mut first = Extensions::default();
        assert_eq!(first.get::<u8>(), None);
        first.insert(1u8);
        first.insert("text");
        let mut second = first.clone();
        second.insert(2u8);
        assert_eq!((first.get::<u8>(), second.get::<u8>()), (Some(&1), Some(&2)));
        assert_eq!(second.get::<&str>(), Some(&"text"));
        assert!(!format!("{second:?}").contains("text"));
    }
}
