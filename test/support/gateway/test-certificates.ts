import { authoritiesOf, renewWebhookTls } from '#protocols/admission/webhook-tls.ts'

/** A new certificate for 127.0.0.1 with its key and its authority, valid from an hour before `at` for 90 days. */
export function freshCertificate(at = new Date()) {
  const made = renewWebhookTls(undefined, ['127.0.0.1'], at)
  return { ...made.server, authority: authoritiesOf(made) }
}

/** A key pair and certificates for test servers on 127.0.0.1. No one else trusts them. */
export const testServerKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgBRZlurGmRTDltBkg
X7A52MC+lyKBZocA9ssjPcyveoyhRANCAARbUEjLEu3+ViGjF1RgVf8taBoOPPgG
XrcIxgKdtdG3y/x3eu/UFEfkmFeaugXyBjelSnxuL8v9/3UlIf/3QxUH
-----END PRIVATE KEY-----
`

export const testServerCertificate = `-----BEGIN CERTIFICATE-----
MIIBpDCCAUqgAwIBAgIUW0xairhwpg3gf8pIsJ5I8a4C5M0wCgYIKoZIzj0EAwIw
HjEcMBoGA1UEAwwTZmFrZS1rdWJlcm5ldGVzLWFwaTAgFw0yNjExMTUwMjE1MjBa
GA8yMTI2MTAyMjAyMTUyMFowHjEcMBoGA1UEAwwTZmFrZS1rdWJlcm5ldGVzLWFw
aTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABFtQSMsS7f5WIaMXVGBV/y1oGg48
+AZetwjGAp210bfL/Hd679QUR+SYV5q6BfIGN6VKfG4vy/3/dSUh//dDFQejZDBi
MB0GA1UdDgQWBBS1eHmJaAaBzSWVXN5RXXsS8dFlQTAfBgNVHSMEGDAWgBS1eHmJ
aAaBzSWVXN5RXXsS8dFlQTAPBgNVHRMBAf8EBTADAQH/MA8GA1UdEQQIMAaHBH8A
AAEwCgYIKoZIzj0EAwIDSAAwRQIhAI9zxQVkXbp8IAEkQclDDt1iQLu6wzG473dZ
/4/iLhkkAiByR5mp9A9OtFyNYvMMdgktfa6oRFtglqoHnInqFm6f8A==
-----END CERTIFICATE-----
`

/** The certificate of an authority that signed none of the above. */
export const unrelatedCertificate = `-----BEGIN CERTIFICATE-----
MIIBfjCCASWgAwIBAgIUTsJMRsqxV9oiz7odxYq/S++qE/MwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJdW5yZWxhdGVkMCAXDTI2MTExNTAyMTUyMFoYDzIxMjYxMDIy
MDIxNTIwWjAUMRIwEAYDVQQDDAl1bnJlbGF0ZWQwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATgI+CTlpdoUsiIDFM6whQmHlZPMFqItFWlvEPLqNf00k1xTvKgzytn
juhO3jope54ADo0H+8lSIU3KW7m9ecP1o1MwUTAdBgNVHQ4EFgQUWaZtmL2USokQ
wQ0HQvbYg8g8CZIwHwYDVR0jBBgwFoAUWaZtmL2USokQwQ0HQvbYg8g8CZIwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAh8u7M8pUpApdMBBhx2k3E/o
hs+zXoGdX5SG3QTumchNAiEAr/YLxW2M6uc4KqfKfaWEv6mAMNyQWoBRI2vLg23x
xS8=
-----END CERTIFICATE-----
`
