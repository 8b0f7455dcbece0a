import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { tokenAlgorithms } from '#protocols/jwt/signing-key.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { badKeys, certificateOnly, goodKey } from '#testing/sts/bad-keys.ts'

const target = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: k8s }
spec:
  className: targets.Kubernetes
  params: { url: https://k8s.example.com, tokenFile: /run/token }
`
const values = (algorithm: string) => `
sts:
  endpoints:
    - name: one
      audience: one.example.com
      path: /sts/one
      algorithm: ${algorithm}
      issuer: { host: issuer.example.com, keypair: pair }
      azRules: [{ scope: filter, constraint: (saname=a) }]
`

type Place = 'file' | 'secret' | 'cluster'

/** The problems that `check` and `serve` report for an endpoint with this key. */
async function errorsWith(text: string, algorithm: string, place: Place): Promise<string[]> {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'target.yaml'), target)
  writeFileSync(join(folder, 'values.yaml'), values(algorithm))
  const [file, secret] = [join(folder, 'keys', 'pair.key'), join(folder, 'secrets', 'pair', 'tls.key')]
  if (place !== 'cluster') {
    const path = place === 'file' ? file : secret
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
  }
  const { issues } = await loadConfiguration({
    folder,
    catalog,
    environment: {},
    ...(place === 'cluster'
      ? { clusterSecrets: (name: string, key: string) => (name === 'pair' && key === 'tls.key' ? text : undefined) }
      : {}),
  })
  return issues.filter(({ level }) => level === 'error').map(formatIssue)
}

test('an unreadable secret is an error, and no key is created instead', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'target.yaml'), target)
  writeFileSync(join(folder, 'values.yaml'), values('ES256'))
  const secret = join(folder, 'secrets', 'pair', 'tls.key')
  mkdirSync(secret, { recursive: true })
  const { issues } = await loadConfiguration({ folder, catalog, environment: {} })
  expect(issues.map(formatIssue)).toEqual([expect.stringMatching(`issuer.keypair.*: ${secret} is not a file`)])
})

const places: readonly Place[] = ['file', 'secret', 'cluster']

describe("a configured key that can't sign is reported where it is named", () => {
  test.each(badKeys())('$what under $algorithm', async ({ text, algorithm, reason }) => {
    for (const place of places) {
      const errors = await errorsWith(text, algorithm, place)
      const named = place === 'file' ? 'keys/pair.key' : 'tls.key of the secret pair'
      const refusals = errors.filter((line) => line.startsWith('values.yaml:8:43: sts.endpoints[0].issuer.keypair: '))
      expect(refusals).toEqual([expect.stringContaining(`${named} `)])
      expect(refusals[0]).toContain(reason)
    }
  })
})

test.each(tokenAlgorithms)('a key for %s is accepted everywhere', async (algorithm) => {
  const text = goodKey(algorithm)
  for (const place of places) expect(await errorsWith(text, algorithm, place)).toEqual([])
})

test('a certificate of the same name is not a key of the endpoint', async () => {
  expect(await errorsWith(certificateOnly, 'RS256', 'file')).toEqual([])
})

test('the key of an identity provider is checked too, at its own place', async () => {
  const folder = temporaryFolder()
  writeFileSync(
    join(folder, 'idp.yaml'),
    `apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: issuer }
spec:
  isApp: false
  cookieConfig: { sessionCookieName: s, timeout: 900 }
  urls:
    - hosts: ['*']
      uri: /auth/idp/people
      azRules: [{ scope: dn, constraint: o=x }]
      idp:
        className: idp.OpenIDConnect
        params: { jwtSigningKey: pair }
`,
  )
  const clusterSecrets = (name: string, key: string) =>
    name === 'pair' && key === 'tls.key' ? goodKey('EdDSA') : undefined
  const { issues } = await loadConfiguration({ folder, catalog, environment: {}, clusterSecrets })
  expect(issues.map(formatIssue)).toContainEqual(
    expect.stringMatching(
      /^idp\.yaml:13:19: spec\.urls\[0\]\.idp\.params\.jwtSigningKey: tls\.key of the secret pair holds a key that signs EdDSA, and the algorithm is RS256/,
    ),
  )
})
