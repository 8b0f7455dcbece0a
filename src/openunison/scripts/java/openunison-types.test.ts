import { hash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  EntityUtils,
  HttpClients,
  HttpGet,
  HttpPost,
  NameValue,
  RequestConfig,
  UrlEncodedFormEntity,
} from './apache-http.ts'
import { type ClusterInfo, clusterRoles } from './cluster-roles.ts'
import { DateTime, DateTimeZone, DateUtils } from './date-time.ts'
import { HashMap } from './hash-map.ts'
import { type Bridge, connectBridge } from './host-bridge.ts'
import { GlobalEntries, Workflow, WorkflowTask } from './host-objects.ts'
import { Attribute, AuthInfo } from './identity.ts'
import {
  IllegalArgumentException,
  IOException,
  NumberFormatException,
  UnsupportedOperationException,
} from './java-exception.ts'
import { typeName } from './java-name.ts'
import { DigestUtils, Gson, GsonBuilder, javaTypes, Long, NVP } from './java-types.ts'
import { FilterBuilder } from './ldap-filter.ts'
import { K8sUtils, OpenShiftTarget, ProvisioningTarget } from './targets.ts'

const answers: unknown[] = []

const sent: unknown[] = []

const bridge: Bridge = (request, text) => {
  if (request === 'http') sent.push(JSON.parse(text))
  const { algorithm, bytes } = JSON.parse(text)
  return JSON.stringify(request === 'digest' ? hash(algorithm, Buffer.from(bytes, 'base64'), 'hex') : answers.shift())
}

beforeAll(() => connectBridge(bridge))

test('a name with dots is that of the nested type', () => {
  expect(
    ['java.util.HashMap', 'java.net.http.HttpRequest.BodyPublishers', 'a.b.C$D.E', 'nothing', 'A.B', ''].map(typeName),
  ).toEqual(['java.util.HashMap', 'java.net.http.HttpRequest$BodyPublishers', 'a.b.C$D$E', 'nothing', 'A$B', ''])
  expect([...javaTypes.keys()].filter((name) => typeName(name) !== name)).toEqual([])
})

describe('org.joda.time.DateTime', () => {
  test('reads numbers and texts, in UTC', () => {
    expect(`${new DateTime('2026-01-31T08:00:00+02:00')}`).toBe('2026-01-31T06:00:00.000Z')
    expect(new DateTime('2026-01-31T08:00:00').getMillis()).toBe(Date.UTC(2026, 0, 31, 8))
    expect(new DateTime(0, DateTimeZone.UTC).plusDays(1).plusHours(1).minusMinutes(1).toString()).toBe(
      '1970-01-02T00:59:00.000Z',
    )
    expect(new DateTime(new DateTime(5)).equals(new DateTime(5))).toBe(true)
    for (const wrong of ['soon', Number.NaN, 1e300]) expect(() => new DateTime(wrong)).toThrow(IllegalArgumentException)
  })

  test('compares', () => {
    const [past, future] = [DateTime.now().minusDays(1), new DateTime().plusDays(1)]
    expect([
      past.isBeforeNow(),
      past.isAfterNow(),
      future.isAfterNow(),
      past.isBefore(future),
      past.isAfter(future),
    ]).toEqual([...[true, false, true, true, false]])
  })
})

test('org.apache.commons.codec.digest.DigestUtils', () => {
  expect(DigestUtils.sha1Hex('ü')).toBe(hash('sha1', 'ü', 'hex'))
  expect(DigestUtils.sha256Hex([-61, -68])).toBe(hash('sha256', 'ü', 'hex'))
  expect([DigestUtils.md5Hex(''), DigestUtils.sha512Hex('')]).toEqual([
    hash('md5', '', 'hex'),
    hash('sha512', '', 'hex'),
  ])
})

test('FilterBuilder escapes values and refuses names that are none', () => {
  const either = FilterBuilder.or(
    FilterBuilder.equal('uid', 'a)(uid=*'),
    FilterBuilder.not(FilterBuilder.present('mail')),
  )
  expect(either.toString()).toBe('(|(uid=a\\29\\28uid=\\2a)(!(mail=*)))')
  expect(FilterBuilder.and(either, '(n>=1)').toString()).toContain('(n>=1)')
  expect(() => FilterBuilder.equal('uid)(x', 'a')).toThrow(IllegalArgumentException)
})

test('Long and DateUtils', () => {
  expect(new DateTime(new Long('1700000000000')).getMillis()).toBe(1_700_000_000_000)
  expect(() => new Long('soon')).toThrow(NumberFormatException)
  expect(DateUtils.convertIntervalDate('133444736000000000').getTime()).toBe(1_700_000_000_000)
  expect(() => DateUtils.convertIntervalDate('never')).toThrow(IllegalArgumentException)
})

test('the session has the roles of the user by cluster and namespace', () => {
  const rolesOf = (text: string) =>
    clusterRoles(new AuthInfo('', '', '', 0, new HashMap({ portalGroups: new Attribute('portalGroups', text) })))
  const roles = rolesOf('[{"Cluster":"k8s","Namespace":"N/A","Name":"Administrators"}]')
  const cluster = roles?.get('k8s') as ClusterInfo | undefined
  expect(cluster?.getNamespaces().get('N/A')).toEqual(new HashMap({ Administrators: 1 }))
  expect([rolesOf('[]')?.size(), rolesOf('{}'), rolesOf('x')]).toEqual([0, null, null])
})

test('Gson and NVP', () => {
  expect(new Gson().toJson(new HashMap({ a: [1] }))).toBe('{"a":[1]}')
  expect(new GsonBuilder().setPrettyPrinting().create().toJson({ a: 1 })).toBe('{\n  "a": 1\n}')
  const pair = new NVP('a', 1)
  expect([pair.getName(), pair.getValue()]).toEqual(['a', '1'])
})

test('OpenShiftTarget.sub2uid makes names of Kubernetes objects', () => {
  expect(OpenShiftTarget.sub2uid('Ada.L-1@x')).toBe('ada.l-x-49-xx-64-xx')
  expect(OpenShiftTarget.sub2uid('ü')).toBe('x-252-x')
})

test('global entries belong to the script', () => {
  GlobalEntries.getGlobalEntries().set('a', 1)
  expect([GlobalEntries.getGlobalEntries().get('a'), GlobalEntries.getGlobalEntries().get('b')]).toEqual([1, null])
})

test('outside of a run there is no workflow', () => {
  const workflow = new WorkflowTask().getWorkflow()
  expect(workflow).toBeInstanceOf(Workflow)
  expect(() => workflow.getId()).toThrow(/no workflow runs/)
})

describe('Apache HTTP client', () => {
  test('sends forms and reads responses', () => {
    const post = new HttpPost('https://x.test/token')
    post.addHeader(new NameValue('Accept', 'application/json'))
    post.setEntity(new UrlEncodedFormEntity([new NameValue('a', 'ü &'), new NameValue('b', null)]))
    answers.push({
      status: 201,
      url: 'https://x.test/token',
      headers: [['X-A', '1']],
      body: Buffer.from('grün').toString('base64'),
    })
    const response = HttpClients.custom().setDefaultRequestConfig(RequestConfig.custom().build()).build().execute(post)
    expect([response.getStatusLine().getStatusCode(), EntityUtils.toString(response.getEntity())]).toEqual([
      201,
      'grün',
    ])
    expect([response.getFirstHeader('x-a')?.getValue(), response.getFirstHeader('none')]).toEqual(['1', null])
    expect(sent.at(-1)).toMatchObject({
      method: 'POST',
      redirect: 'NEVER',
      headers: [
        ['Accept', 'application/json'],
        ['Content-Type', 'application/x-www-form-urlencoded'],
      ],
      body: Buffer.from('a=%C3%BC+%26&b=').toString('base64'),
    })
  })

  test('a GET follows redirects, and headers are checked', () => {
    const get = new HttpGet('https://x.test/')
    get.setHeader('Authorization', 'Bearer a')
    get.setHeader('authorization', 'Bearer b')
    answers.push({ status: 200, url: 'https://x.test/', headers: [], body: '' })
    new ProvisioningTarget('k8s').getProvider().createClient().getHttp().execute(get)
    expect(sent.at(-1)).toMatchObject({ redirect: 'NORMAL', headers: [['authorization', 'Bearer b']] })
    get.addHeader('X-A', 'b\r\nX-C: d')
    expect(() => HttpClients.createDefault().execute(get)).toThrow(IllegalArgumentException)
    expect(() => HttpClients.createDefault().execute({})).toThrow(IllegalArgumentException)
    expect(() => EntityUtils.toString({})).toThrow(IllegalArgumentException)
  })
})

test('failures of the gateway are exceptions', () => {
  const { getUrl } = { getUrl: () => new ProvisioningTarget('x').getProvider().getUrl() }
  for (const [failure, type] of [
    ['unreachable', IOException],
    ['unsupported', UnsupportedOperationException],
    ['refused', Error],
  ] as const) {
    answers.push({ failure, message: 'why' })
    expect(getUrl).toThrow(type)
  }
  answers.push({ value: { status: 403, body: '{}' } })
  expect(() => K8sUtils.loadSecret('k8s', 'ns', 'x')).toThrow(/403/)
})
