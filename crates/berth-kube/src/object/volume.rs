//! Volumes: claims bind a pod to where their volume is; of the others the kind is enough.

use super::Text;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub name: Text,
    pub source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A claim by name.
    Claim(Text),
    /// A claim made for this pod; its name is the pod's, a dash and the volume's.
    Ephemeral,
    /// Any other kind, such as `configMap`.
    Other(Text),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    claim_name: Text,
}

impl<'de> Deserialize<'de> for Volume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Volume, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Volume;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a volume")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Volume, A::Error> {
                let mut name = Text::default();
                // A volume of which nothing but the name is said is an empty directory.
                let mut source = Source::Other("emptyDir".into());
                while let Some(key) = map.next_key::<Text>()? {
                    match &*key {
                        "name" => name = map.next_value()?,
                        "persistentVolumeClaim" => {
                            source = Source::Claim(map.next_value::<Claim>()?.claim_name);
                        }
                        kind => {
                            let value = map.next_value::<Option<IgnoredAny>>()?;
                            match (kind, value) {
                                (_, None) => {}
                                ("ephemeral", Some(_)) => source = Source::Ephemeral,
                                (_, Some(_)) => source = Source::Other(key),
                            }
                        }
                    }
                }
                Ok(Volume { name, source })
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_tell_claims_from_the_rest() {
        let volumes: Vec<Volume> = serde_json::from_str(
            r#"[{"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                {"configMap": {"name": "settings"}, "name": "c"},
                {"name": "plain"}]"#,
        )
        .unwrap();
        let sources: Vec<&Source> = volumes.iter().map(|volume| &volume.source).collect();
        assert_eq!(
            sources,
            [
                &Source::Claim("imagenet".into()),
                &Source::Ephemeral,
                &Source::Other("configMap".into()),
                &Source::Other("emptyDir".into()),
            ]
        );
        assert_eq!(&*volumes[2].name, "c");
    }
}
