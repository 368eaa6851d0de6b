//! Volumes: claims bind a pod to where their volume is, and some disks let few pods of a node use
//! them; of the others the kind is enough.

use super::Text;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub name: Text,
    pub source: VolumeSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeSource {
    /// A claim by name.
    Claim(Text),
    /// A claim made for this pod; its name is the pod's, a dash and the volume's.
    Ephemeral,
    /// A disk that the pod names itself, without a claim.
    Disk(Box<Disk>),
    /// Any other kind, such as `configMap`.
    Other(Text),
}

/// A disk that pods of one node cannot always use at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Pods that have one of these in common mean the same disk: an image of Ceph has a name at
    /// each monitor.
    pub names: Vec<Text>,
    /// It is only read, beside any others that only read it.
    pub shared: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    claim_name: Text,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GcePersistentDisk {
    pd_name: Text,
    read_only: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AwsElasticBlockStore {
    #[serde(rename = "volumeID")]
    volume_id: Text,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Iscsi {
    iqn: Text,
    read_only: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Rbd {
    monitors: Vec<Text>,
    pool: Text,
    image: Text,
    read_only: bool,
}

impl From<GcePersistentDisk> for Disk {
    fn from(disk: GcePersistentDisk) -> Disk {
        Disk::named(format!("gcePersistentDisk/{}", disk.pd_name), disk.read_only)
    }
}

impl From<AwsElasticBlockStore> for Disk {
    fn from(disk: AwsElasticBlockStore) -> Disk {
        // kube-scheduler lets no two pods share such a disk, not even if both only read it.
        Disk::named(format!("awsElasticBlockStore/{}", disk.volume_id), false)
    }
}

impl From<Iscsi> for Disk {
    fn from(disk: Iscsi) -> Disk {
        Disk::named(format!("iscsi/{}", disk.iqn), disk.read_only)
    }
}

impl From<Rbd> for Disk {
    fn from(Rbd { monitors, pool, image, read_only }: Rbd) -> Disk {
        let names = monitors.iter().map(|at| format!("rbd/{at}/{pool}/{image}").into());
        Disk { names: names.collect(), shared: read_only }
    }
}

impl Disk {
    fn named(name: String, shared: bool) -> Disk {
        Disk { names: vec![name.into()], shared }
    }

    /// What a volume says of its disk, if it says anything.
    fn read<'de, T, A>(map: &mut A) -> Result<Option<VolumeSource>, A::Error>
    where
        T: Deserialize<'de> + Into<Disk>,
        A: MapAccess<'de>,
    {
        let written = map.next_value::<Option<T>>()?;
        Ok(written.map(|written| VolumeSource::Disk(Box::new(written.into()))))
    }
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
                // A volume without a source is an empty directory.
                let mut source = VolumeSource::Other("emptyDir".into());
                while let Some(key) = map.next_key::<Text>()? {
                    match &*key {
                        "name" => name = map.next_value()?,
                        "persistentVolumeClaim" => {
                            source = VolumeSource::Claim(map.next_value::<Claim>()?.claim_name);
                        }
                        "gcePersistentDisk" => {
                            let disk = Disk::read::<GcePersistentDisk, A>(&mut map)?;
                            source = disk.unwrap_or(source);
                        }
                        "awsElasticBlockStore" => {
                            let disk = Disk::read::<AwsElasticBlockStore, A>(&mut map)?;
                            source = disk.unwrap_or(source);
                        }
                        "iscsi" => {
                            source = Disk::read::<Iscsi, A>(&mut map)?.unwrap_or(source);
                        }
                        "rbd" => source = Disk::read::<Rbd, A>(&mut map)?.unwrap_or(source),
                        kind => {
                            let value = map.next_value::<Option<IgnoredAny>>()?;
                            match (kind, value) {
                                (_, None) => {}
                                ("ephemeral", Some(_)) => source = VolumeSource::Ephemeral,
                                (_, Some(_)) => source = VolumeSource::Other(key),
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
        let sources: Vec<&VolumeSource> = volumes.iter().map(|volume| &volume.source).collect();
        assert_eq!(
            sources,
            [
                &VolumeSource::Claim("imagenet".into()),
                &VolumeSource::Ephemeral,
                &VolumeSource::Other("configMap".into()),
                &VolumeSource::Other("emptyDir".into()),
            ]
        );
        assert_eq!(&*volumes[2].name, "c");
    }

    #[test]
    fn disks_are_told_by_what_makes_them_one_and_by_who_may_share_them() {
        let volumes: Vec<Volume> = serde_json::from_str(
            r#"[{"name": "a", "gcePersistentDisk": {"pdName": "pd-1", "readOnly": true}},
                {"name": "b", "awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": true}},
                {"name": "c", "iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.x", "lun": 0}},
                {"name": "d", "rbd": {"monitors": ["m1", "m2"], "pool": "rbd", "image": "i"}},
                {"name": "e", "rbd": null}]"#,
        )
        .unwrap();
        let disk = |names: &[&str], shared| {
            let names = names.iter().map(|name| (*name).into()).collect();
            VolumeSource::Disk(Box::new(Disk { names, shared }))
        };
        let sources: Vec<VolumeSource> = volumes.into_iter().map(|volume| volume.source).collect();
        assert_eq!(sources[0], disk(&["gcePersistentDisk/pd-1"], true));
        assert_eq!(sources[1], disk(&["awsElasticBlockStore/vol-1"], false));
        assert_eq!(sources[2], disk(&["iscsi/iqn.x"], false));
        assert_eq!(sources[3], disk(&["rbd/m1/rbd/i", "rbd/m2/rbd/i"], false));
        assert_eq!(sources[4], VolumeSource::Other("emptyDir".into()));
    }
}
