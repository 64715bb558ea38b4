use curt_core::ClickSubject;

/// The bytes by which subjects are sorted and told apart. They are part of the format.
///
/// ```text
/// 0 everything · 1 orphans · 2 owner · 3 owner · tag · 4 domain · generation · key
/// ```
/// Numbers have all their bytes, the highest first.
pub(super) fn subject_key(subject: &ClickSubject) -> Vec<u8> {
    match subject {
        ClickSubject::Everything => vec![0],
        ClickSubject::Orphans => vec![1],
        ClickSubject::Owner(owner) => [&[2], &owner.0.to_be_bytes()[..]].concat(),
        ClickSubject::Tag(owner, tag) => {
            [&[3], &owner.0.to_be_bytes()[..], tag.as_bytes()].concat()
        }
        ClickSubject::Link(id, generation) => [
            &[4],
            &id.domain.0.to_be_bytes()[..],
            &generation.to_be_bytes(),
            id.key.as_bytes(),
        ]
        .concat(),
    }
}
