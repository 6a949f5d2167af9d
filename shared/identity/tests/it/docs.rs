//! The matrix as people read it is the matrix that decides.

use std::{fs, path::Path};

#[test]
fn the_matrix_in_the_documents_is_the_one_in_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/permissions.md");
    let expected = format!(
        "# Who may do what\n\nGenerated from `shared/identity/src/permission.rs`; after a change there: \
         `BLESS=1 cargo nextest run -p buildscale-identity the_matrix`.\n\n{}\nThe actions are the scopes of API keys, too: a key may do \
         what its scopes say *and* its person's role allows.\nNobody gives or takes a role above their own; a workspace keeps \
         its last owner; everybody may leave.\n",
        buildscale_identity::matrix()
    );
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "docs/permissions.md differs from the code");
}
