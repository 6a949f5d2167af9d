//! JSON objects that are written member by member, so that no [`serde_json::Value`] copies their texts.

/// Writes an object to a serializer, its members in this order. A member under `maybe` is an option, and is left out where it is none. A
/// failure of the serializer returns from the function around it.
macro_rules! object {
    (
        $to:expr, { $($name:literal: $value:expr),* $(,)? }
        $(, maybe { $($option_name:literal: $option:expr),* $(,)? })?
    ) => {{
        let mut object = serde::Serializer::serialize_map($to, None)?;
        $(serde::ser::SerializeMap::serialize_entry(&mut object, $name, &$value)?;)*
        $($(if let Some(value) = &$option {
            serde::ser::SerializeMap::serialize_entry(&mut object, $option_name, value)?;
        })*)?
        serde::ser::SerializeMap::end(object)?
    }};
}

pub(crate) use object;
