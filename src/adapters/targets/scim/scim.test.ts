import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { descriptionOf } from '#sdk/module/parameter-types.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import scim, { parseScim } from './scim.ts'

function parse(params: ParamValues) {
  const issues = noIssues()
  const config = parseScim(fakeParams(params), issues, fakeParseContext('/configuration'))
  return { config, problems: issueTexts(issues.list) }
}

const url = 'https://scim.test/v2'
const tokenUrl = 'https://login.test/token'
const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

describe('parameters', () => {
  test('a token', () => {
    const { config, problems } = parse({ url, token: 't', caFile: 'ca.pem' })
    expect(problems).toEqual([])
    expect(config).toMatchObject({
      access: { kind: 'token', token: 't' },
      authority: { file: '/configuration/ca.pem' },
      memberships: 'user',
      missingGroups: 'refuse',
      passwords: false,
      timeoutMillis: 10_000,
    })
  })

  test('client credentials by secret, and by key', () => {
    const secret = parse({ url, tokenUrl, clientId: 'g', clientSecret: 's', clientSecretIn: 'body', scope: 'scim' })
    expect(secret.problems).toEqual([])
    expect(secret.config.access).toMatchObject({ clientId: 'g', proof: { kind: 'post', secret: 's' }, scope: 'scim' })
    const key = parse({ url, tokenUrl, clientId: 'g', clientKey: pem, clientKeyId: 'k' })
    expect(key.problems).toEqual([])
    expect(key.config.access).toMatchObject({ proof: { kind: 'key', key: { algorithm: 'EdDSA', id: 'k' } } })
  })

  test.each<[ParamValues, RegExp]>([
    [{ token: 't' }, /"url" is required/],
    [{ url: 'http://scim.test', token: 't' }, /http is accepted on this machine only/],
    [{ url: `${url}?x=1`, token: 't' }, /query/],
    [{ url }, /one of "token" and "tokenUrl"/],
    [{ url, token: 'a b' }, /the secret is not a token that can be used/],
    [{ url, token: 't', clientId: 'g' }, /"clientId" belongs to "tokenUrl"/],
    [{ url, token: 't', tokenUrl, clientId: 'g', clientSecret: 's' }, /"token" cannot be given beside/],
    [{ url, tokenUrl, clientSecret: 's' }, /"clientId" is required/],
    [{ url, tokenUrl, clientId: 'g' }, /one of "clientSecret" and "clientKey"/],
    [{ url, tokenUrl, clientId: 'g', clientSecret: 's', clientKey: pem }, /"clientKey" cannot be given beside/],
    [{ url, tokenUrl, clientId: 'g', clientSecret: 's', clientKeyId: 'k' }, /"clientKeyId" belongs to/],
    [{ url, tokenUrl, clientId: 'g', clientKey: 'hush' }, /must be a private key as PEM text$/],
    [{ url, token: 't', caFile: 'a', certificate: 'b' }, /"certificate" cannot be given beside/],
    [{ url, token: 't', timeoutMillis: '5' }, /from 100/],
    [{ url, token: 't', memberships: 'both' }, /one of user, group/],
    [{ url, token: 't', profile: 'skype' }, /one of slack, github, gitlab, atlassian/],
    [{ url, token: 't', profile: 'gitlab', memberships: 'group' }, /"memberships" is for groups, and GitLab has none/],
    [{ url, token: 't', profile: 'gitlab', missingGroups: 'create' }, /"missingGroups" is for groups, and GitLab/],
  ])('%j is rejected', (params, problem) => {
    expect(parse(params).problems).toEqual([expect.stringMatching(problem)])
  })

  test('tokens, secrets and keys are secret', () => {
    const secret = Object.entries(scim.parameters).flatMap(([name, row]) =>
      descriptionOf(row).secret === true ? [name] : [],
    )
    expect(secret).toEqual(['token', 'clientSecret', 'clientKey'])
  })
})
