//! Keys of issuers that exist nowhere but in these tests, and tokens signed with them.

use base64::{Engine, engine::general_purpose::STANDARD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Value, json};

/// PKCS #1, 2048 bits.
pub const RSA_1: &str = "\
MIIEowIBAAKCAQEAwI4Udmc4ukP6rIBeVqEqPq9GDMOAdpr18kaSQgDFHJwd2JrX9juFfuIoSJ3p5KcBpXBTf/K/uU80Fh3xdEtBhl29lwvRD4sL\
wtHh6FuhQFP0FSSqXuKcxO2SPhm8yvf5lM3dGNoRrRWDUac4ESqM0EF5tgVrY0WitqVe60SfcQawsKytVZfcuuxvfCAmDO/K604CHzcCAKvVfiKg\
UD0zWHxQH3R9F11Q0iTcXM3Lebxqr9YYq1J9fhcnCVKXnM03jdA6kF2lsnYukXhXszk4kNHfHgr4IUo8GOjMaLd7QQy9JU17mpT5y1WW4IdQoXmo\
v097dH0OL5e3UvlPp5ZB1wIDAQABAoIBACUrJ9sFKMeXuKsUqmEpgfiQp8Jt+H2sgt4t7iyMboALyJ0XoqlWqvmnmSQPS2dGL4SqTovrpUOVfNXq\
GMIchrzzmlWuQ8Au1GnaTrOmAFXk/sAYEET5lE5VF34iRLWfMU+ef1e9PF0/QlaAI0v4/S5z/RT8LdL/TZ3ZBR3/5JER5aIt3WF/lgzAfdfC8PN4\
XZuDpFAGRKKUktPZYmuWZGLAfLpYL1QDTIGVxq3HwlNszQ/6IzdNh2RkAdU1S3XaftvY0/OFASo3tuAZ9xCP5Yzgc2rXh1PNXUMBBTq28fIiMXPC\
/+8WOBzKyX6X6NnD40hW5ddTyDviKK0Rg+Xw3z0CgYEA++qDROCxY27LcfNzVm8tzbGKvy1Q8Zr1hYLlA+LMa0d3/ROc2OUwudgGdPKrpjN+ebeZ\
VlWV3jLAtYRETNKJ6xRdHt7t5IwGtGcIIAWIeHItJ8tVaqUBM/+BlgIfMvJ0y3KEq+sUMZ1aD0pq+hDBJhHVs5PTHQ0gyvP5xP2MfNMCgYEAw601\
2ihJPxnUoGasFptvLjCe+JpyFhY4M4pwXlUzgaGEY/zMYvCbFwj3bvtZyIcGrRIyUDFlwPWHBsItWf6lRMxDXVUzO+Ol1x11v6+8LoYSR6coFkbL\
9aV2oLzwmcwWIuTUdA24bYpvMeCxl66vmwHbjyaJl8cUT3Qr83WE9G0CgYEA3PsFtZjo4pFhM49cQJj8c/BnBnbpB1doQnrlDDiaGw0xazYWI4lA\
6fVfDJ2HBx8qtfjhMIOZGLYqp8/j3gPd6fIOEbN6uT4/72ZmETjpUsbNZ5gNUKR33rYmZYFs/tMCsyi8ytZG+5LNWpZsKvohhJSmgoWM7nICryW/\
lxbXcvMCgYAmQyVnnj8MXrGsF8eIuCYaYxmCxTiPxxKASY7Fc2WZ8Iphvtn8cs3wyCkSA4Y/5t9QUmGSOsaJ37jigm+5zEhm1oZJptJY4J/aG4Gd\
1PA4LLFAX5hAGuHhC9TRg4CMolKlyhcdBl3M1af+mdBAN8FQzyEusbtv+VaoXrAFcDJqVQKBgCS3LWp+8ubJqUauuUtJIxRgMRNGqDvv44a4fdIm\
Z+KqvsSKcz3kgt4fmq1zW+mDCdxqyprC6WZU9ah9Ne/weFpwe7eoV/v4Eg4jUEzA8/NIUVYc38akEckdfpxJ/BauBq/TNaCRfdd7yFgh8wkUPU5c\
6g4dONa+t/v8C7Wfe0Yu";
/// PKCS #1, 2048 bits.
pub const RSA_2: &str = "\
MIIEowIBAAKCAQEA1JWImZ7wa6uw5JppiPDMFjFKNUOWUjyfrWvXrak+Me6RF1wmReBaaz3c2Xv7ZqE7BzETxGy/v49Ngw+Mg02t1BBTsPYwtYje\
bYBNKPn7kGwQ7c139AWbO4Sg3Q0vbPcswMFg1//3sUlfRjoHHcdx5GwKkGdwGKla9zfnT1jqPe78L0E/sPN0zSlyEO9tRFDrmEAzqGXTTyUw3hdW\
/X4pj0gQ3hVoBX37VqGIQ6uH39zpAneo8JjTenN6MVp8E9PIasVHGNlxFndTdzFq4x3UYkJiGIHOJX86Msj6PhCUDTzNcHXxvWewNniO8TAiDSgu\
MpGkwnPfhaUrj0iJgY/NCwIDAQABAoIBAF5L+DxgbrfsADrfLaoDWhwMACVRVigjYRcNi62qMX73ml94zjdXtfP1DHZiUxlqsmLVx7VtIb8oo1Lb\
/lGuDsnO9ji8c83KqRN8gn2HKaod7YJ2jlttcza69ZooQ527pJvaC4m0rpvy9nKRwd9ZPXF75VG5uFUQJlwb7ZxaTglrHjmAPmM9Aw10LinNFhlj\
7PD/sER9d+7kscgDGPcUUEtGYlt2I7fHrSDCMbCOt0ZaSawJd9B3dbj/LDAaygEJFOq3SzFJEhOyZaaNB6lTzEGaapEgKknMRki0HPRXMeCTK0P/\
uEnZRBJx3RBH275nKh6w5srSgjJgyX37gwO1orUCgYEA9NCIc9Ly56ZRi9uEhXPUoTUk1GOmXJUeLD5qgJlyfG6r7oep03sDd7NHYMbNFUmc6Z3s\
CE0Sir9eprBSLWSXOCaUgKnUa3Y2vGiju4pgZU0qPeEg2MAWmtWsTI7WawgiPRcMYrr80o2+b4UTjj/sRaDQMJFs6bUnT6ktE8I64/cCgYEA3kwE\
j7C53/Te4svi9gX7mlxxo7enOtdqupfAKs9GpwGdb7Ag+QQG2sw9pivV106VsvqLUhIUTLdJbIJJm85g/Z+OovdRvzxglHEekjVQJgS2mk1qBnnd\
aMmhp54QCLHJwWBNpRlhCxM5obi+YcD+hlnWFR44DNJRrfWEnnO2Mo0CgYAJ7sgKgv2N/oaCeSaYT4nJ/KEA6QYf7YDq5KFnlFI70DWzmNeAGBac\
7a4wtAAwI+t04w5ni9D7xiXt92tuIg2snowZ6EoRDhvMayZxfnzIv2e+WPr/MFP6dj7mYEk80HirJ9s9yj5lwJCAb9LKS7enX43y2oOju9Dbf46v\
pYrEIwKBgQCwp7aEPgwolt89WoudubltvQMt+Lezwhb1+7xiCOB7vYPQiyZY3cNYwzBGytUgSjoaxpJLAUUShiGaUpuObt6TDuZ6SZK0J5YUwSRr\
SmTMIbi/PMACL3wtVvbZTnotfqP3wcFSb6238Go/Q6I/6vAZ8nB3zdD7F3SDivX+ObRTzQKBgC7Wd5fFM1tONY4dl5J7SvnUAJ+upX4JfTUwCbQA\
abe7lvuTvHwAzgpVZk+exzjxZMDfoscBIozQhhcgXDTGi51lYFvQhmiCD2wORwn7j6sb8sjHZ3RuW5EvUEsn97Ne58wGJf08bxy5ytxzfwi1UeVm\
o4/XadH+GjVGeYkh4eJI";
/// PKCS #8, P-256.
pub const EC_1: &str = "\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOUkbPNo+xhwN44AN6ZKfc0qj3ChtXistHu9B3EABqzKhRANCAARJm5jONJ2jnvpH\
y5lvuDSqjRfIyd+7Abz1GupT2FGkNk2QVHi7DKj+teyti/e8S5iIGvtbuE74i8yrai9LD+hR";

/// A key that an issuer signs with.
pub struct Issuing {
    pub id: &'static str,
    pub algorithm: Algorithm,
    key: EncodingKey,
}

impl Issuing {
    pub fn rsa(id: &'static str, der: &str) -> Self {
        Self { id, algorithm: Algorithm::RS256, key: EncodingKey::from_rsa_der(&STANDARD.decode(der).unwrap()) }
    }

    pub fn ec(id: &'static str, der: &str) -> Self {
        Self { id, algorithm: Algorithm::ES256, key: EncodingKey::from_ec_der(&STANDARD.decode(der).unwrap()) }
    }

    /// As the issuer publishes it.
    pub fn published(&self) -> Value {
        let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&self.key, self.algorithm).unwrap()).unwrap();
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    pub fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) };
        jsonwebtoken::encode(&header, claims, &self.key).unwrap()
    }
}

/// A JWK set.
pub fn set(keys: &[&Issuing]) -> String {
    json!({ "keys": keys.iter().map(|key| key.published()).collect::<Vec<_>>() }).to_string()
}
