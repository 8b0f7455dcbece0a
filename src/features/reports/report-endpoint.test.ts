import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { ReportSpec } from '#config/kinds/portal.ts'
import { issuerIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { answerRoute, type Routes } from '#sdk/api/routes.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { unzipped } from '#testing/gateway/unzipped.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { serveReport } from './report.ts'
import { createReports, type ReportCall, type ReportLimits, Reports } from './report-endpoint.ts'
import type { ReportCursor, ReportReader, ReportRow, ReportRun } from './report-reader.ts'

interface MemoryReportOptions {
  readonly columns?: readonly string[]
  readonly rows?: readonly ReportRow[]
  /** Throws after this many rows. */
  readonly failsAfter?: number
  /** Rows are returned once this resolves. */
  readonly until?: Promise<void>
  /** Closing a cursor waits for this. */
  readonly closing?: () => Promise<void>
}

/** Returns the same rows for every statement, two at a time, with the delays and failures that a test needs. */
class MemoryReports implements ReportReader {
  readonly runs: ReportRun[] = []
  /** Cursors that are not closed. */
  open = 0
  readonly #options: MemoryReportOptions

  constructor(options: MemoryReportOptions = {}) {
    this.#options = options
  }

  async check(): Promise<void> {}

  async run(run: ReportRun): Promise<ReportCursor> {
    const { columns = [], rows = [], failsAfter = Number.POSITIVE_INFINITY, until, closing } = this.#options
    this.runs.push(run)
    this.open++
    let at = 0
    let closed = false
    return {
      columns,
      next: async () => {
        await until
        if (closed) throw new Error('closed')
        if (at >= failsAfter) throw new Error('the database went away')
        const some = rows.slice(at, Math.min(at + 2, run.limit))
        at += some.length
        return some.length === 0 ? undefined : some
      },
      close: async () => {
        if (!closed) this.open--
        closed = true
        await closing?.()
      },
    }
  }

  async close(): Promise<void> {}
}

const open: ReportSpec = {
  name: 'Open Approvals',
  description: 'All that wait',
  orgId: 'o1',
  groupings: true,
  groupBy: 'id',
  headerFields: ['Approval'],
  dataFields: ['Who', '__proto__'],
  sql: 'select a.id, a.label as Approval, b.approver as "Who", a.state as "__proto__" from report_approvals a join report_approvers b on b.approval = a.id',
}
const changes: ReportSpec = {
  name: 'Changes',
  orgId: 'o2',
  parameters: { beginDate: true, endDate: true, userKey: true, currentUser: true },
  dataFields: ['id'],
  sql: 'select id from report_requests where started between :beginDate and :endDate and subject = :userKey and requestor <> :currentUser',
}
const nobodys: ReportSpec = { name: 'Nobody', dataFields: ['id'], sql: 'select id from report_requests' }

const rows = [
  ['1', 'First', 'Ann', 'open'],
  ['1', 'First', 'Bob "the boss"', null],
  ['2', null, '=cmd|x', 'open'],
]
const columns = ['id', 'approval', 'Who', '__proto__']
/** The year 2030, at noon. */
const now = Date.UTC(2030, 0, 1, 12)

interface Setting extends MemoryReportOptions {
  readonly limits?: ReportLimits
}

function setUp({ limits, ...options }: Setting = {}) {
  const store = new MemoryReports({ columns, rows, ...options })
  const time = { now }
  const counted: string[] = []
  const reports = new Reports({
    reports: [open, changes, nobodys].map(serveReport),
    store,
    secrets: fakeSecretBox('report'),
    clock: () => new Date(time.now),
    log: silentLogger,
    meter: { ran: (name, format, outcome) => void counted.push(`${name} ${format} ${outcome}`) },
    ...(limits === undefined ? {} : { limits }),
  })
  const routes: Routes<ReportCall> = {
    'GET /org/{orgId}': (call, _, org = '') => reports.list(call, org),
    'GET /{name}': (call, _, name = '') => reports.show(call, name),
    'PUT /excelx': (call) => reports.workbook(call),
    'GET /excel/{reportid}/{file}': (call, _, reference = '') => reports.file(call, reference),
  }
  const ask = (
    path: string,
    {
      method = 'GET',
      login = 'ann',
      isOwn = true,
      identity = '',
      orgs = ['o1', 'o2'],
      translations = new Map<string, string>(),
      signal = new AbortController().signal,
      body = '',
      type = 'application/json',
      parts = {} as Partial<GatewayRequest>,
    } = {},
  ) => {
    const exchange = {
      request: {
        ...fakeRequest({
          method,
          url: `http://localhost/main/reports${path}`,
          ...(body === '' ? {} : { body, headers: { 'content-type': type } }),
        }),
        signal,
        ...parts,
      },
      application: 'portal',
      mount: '/main',
      pathInfo: `/reports${path.split('?')[0]}`,
      subject: {
        ...subject(`uid=${login},o=x`),
        ...(identity === '' ? {} : { identity: issuerIdentity('https://idp.example.com', identity) }),
      },
    }
    const call: ReportCall = {
      exchange,
      orgs: new Set(orgs),
      login,
      translate: (text) => translations.get(text) ?? text,
      ownLogin: async () => {
        if (isOwn) return login
        throw new GatewayError('ACCESS_DENIED', 'the login belongs to another user')
      },
    }
    return answerRoute(routes, call, exchange, path.split('?')[0] ?? '')
  }
  return { ask, store, time, counted }
}

const bodyOf = async ({ body }: GatewayResponse): Promise<string> =>
  body instanceof Readable ? (await buffer(body)).toString() : String(body)

test('names and descriptions are translated, and the name still identifies the report', async () => {
  const { ask } = setUp()
  const translations = new Map([
    ['Open Approvals', 'Offene Genehmigungen'],
    ['All that wait', 'Alle, die warten'],
  ])
  const title = { name: 'Open Approvals', label: 'Offene Genehmigungen', description: 'Alle, die warten' }
  const list = JSON.parse(await bodyOf(await ask('/org/o1', { translations })))
  expect(list.reports).toContainEqual(expect.objectContaining(title))
  expect(JSON.parse(await bodyOf(await ask('/Open Approvals', { translations })))).toMatchObject(title)
  expect(await bodyOf(await ask('/Open Approvals'))).not.toContain('"label"')
})

test('reports are counted after their last byte, or when they fail', async () => {
  const { ask, counted } = setUp()
  const answer = await ask('/Open Approvals')
  expect(counted).toEqual([])
  await bodyOf(answer)
  await ask('/Open Approvals?format=xlsx')
  expect(counted).toEqual(['Open Approvals json done', 'Open Approvals xlsx done'])
  const failing = setUp({ failsAfter: 2 })
  await expect(bodyOf(await failing.ask('/Open Approvals?format=csv'))).rejects.toThrow()
  await expect(failing.ask('/Open Approvals?format=xlsx')).rejects.toThrow()
  await expect(failing.ask('/whatever somebody asks for')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(failing.counted).toEqual(['Open Approvals csv failed', 'Open Approvals xlsx failed'])
  const waiting = setUp({ until: new Promise(() => {}) })
  const held = [await waiting.ask('/Open Approvals'), await waiting.ask('/Open Approvals')]
  await expect(waiting.ask('/Open Approvals')).rejects.toMatchObject({ status: 429 })
  expect(waiting.counted).toEqual(['Open Approvals json refused'])
  for (const { body } of held) if (body instanceof Readable) body.destroy()
})

test("a report about the current user is refused if the caller's login belongs to another user", async () => {
  const { ask, store } = setUp()
  const query = '?beginDate=2030-01-01&endDate=2030-01-02&userKey=bob'
  await expect(ask(`/Changes${query}`, { isOwn: false })).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  expect(store.runs).toEqual([])
  expect((await ask('/Open Approvals', { isOwn: false })).status).toBe(200)
})

describe('GET reports/org/{orgId}', () => {
  test('lists the reports of an org, and their parameters', async () => {
    const { ask } = setUp()
    expect(JSON.parse(await bodyOf(await ask('/org/o2')))).toEqual({
      reports: [{ name: 'Changes', description: '', orgID: 'o2', parameters: ['beginDate', 'endDate', 'userKey'] }],
    })
  })

  test.each([
    ['/org/o2', { orgs: ['o1'] }],
    ['/org/', {}],
    ['/org/o1/x', {}],
    ['', {}],
    ['/', {}],
  ])('%s is not found', async (path, options) => {
    await expect(setUp().ask(path, options)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('GET reports/{name}', () => {
  test('has OpenUnison’s form', async () => {
    const { ask, store } = setUp()
    const response = await ask('/open%20approvals')
    expect(response).toMatchObject({
      status: 200,
      headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
    })
    expect((await bodyOf(response)).replace(/"reportid":"[^"]+",/, '')).toBe(
      '{"name":"Open Approvals","description":"All that wait","headerFields":["Approval"],"dataFields":["Who","__proto__"],' +
        '"grouping":[{"header":{"Approval":"First"},"data":[{"Who":"Ann","__proto__":"open"},{"Who":"Bob \\"the boss\\""}]},' +
        '{"header":{},"data":[{"Who":"=cmd|x","__proto__":"open"}]}]}',
    )
    expect(store.open).toBe(0)
  })

  test('without groups there is one group of all rows, even if there are none', async () => {
    const asked = '/Changes?beginDate=0&endDate=2026-01-31&userKey=bob'
    const { ask, store } = setUp({ columns: ['ID'], rows: [['a'], ['b'], ['c']] })
    expect(JSON.parse(await bodyOf(await ask(asked)))).toMatchObject({
      headerFields: [],
      grouping: [{ header: {}, data: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] }],
    })
    expect(store.runs[0]?.values).toEqual(['1970-01-01T00:00:00.000Z', '2026-01-31T23:59:59.999Z', 'bob', 'ann'])
    const none = setUp({ columns: ['id'], rows: [] })
    expect(JSON.parse(await bodyOf(await none.ask(asked)))).toMatchObject({ grouping: [{ header: {}, data: [] }] })
    const noGroups = setUp({ rows: [] })
    expect(JSON.parse(await bodyOf(await noGroups.ask('/Open Approvals')))).toMatchObject({ grouping: [] })
  })

  test("D21: a report of an org that the caller can't see is answered like a missing one", async () => {
    const { ask, store } = setUp()
    const answers = await Promise.all(
      [ask('/Changes', { orgs: ['o1'] }), ask('/Nothing'), ask('/Nobody'), ask('/excelxx')].map((answer) =>
        answer.catch(({ code, publicText }) => ({ code, publicText })),
      ),
    )
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
      new Set(['{"code":"NOT_FOUND","publicText":"Report not found"}']),
    )
    expect(store.runs).toEqual([])
  })

  test('D21: a missing parameter is reported together with all other errors', async () => {
    const { ask, store } = setUp()
    await expect(ask('/Changes?endDate=soon&currentUser=eve&userKey=a&userKey=b&format=pdf')).rejects.toMatchObject({
      status: 400,
      publicText:
        'The report has no parameter "currentUser". userKey may be given once. beginDate is required. ' +
        'endDate must be a day such as 2026-01-31, a time in ISO 8601, or milliseconds since 1970. ' +
        'format must be one of json, csv, xlsx.',
    })
    expect(store.runs).toEqual([])
  })

  test.each([
    ['beginDate=2026-02-30&endDate=0&userKey=a', 'beginDate must be'],
    ['beginDate=-1&endDate=0&userKey=a', 'beginDate must be'],
    ['beginDate=1e3&endDate=0&userKey=a', 'beginDate must be'],
    ['beginDate=999999999999999&endDate=0&userKey=a', 'beginDate must be'],
    ['beginDate=2026-01-02&endDate=2026-01-01&userKey=a', 'beginDate must not be after endDate.'],
    ['beginDate=0&endDate=0&userKey=%00', 'userKey is not a login.'],
    [`beginDate=0&endDate=0&userKey=${'x'.repeat(257)}`, 'userKey is not a login.'],
    ['beginDate=0&endDate=0&userKey=+', 'userKey is required.'],
    ['beginDate=0&endDate=0&userKey=a&excel=maybe', 'excel must be true or false.'],
    ['beginDate=0&endDate=0&userKey=a&excel=true&format=csv', 'format and excel cannot be combined.'],
  ])('rejects %s', async (query, expected) => {
    await expect(setUp().ask(`/Changes?${query}`)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      publicText: expect.stringContaining(expected),
    })
  })

  test('times are bound in the format of the views', async () => {
    const { ask, store } = setUp({ columns: ['id'], rows: [] })
    await ask('/Changes?beginDate=2026-01-31&endDate=2026-01-31T10:00:00%2B02:00&userKey=%27%20or%201=1')
    expect(store.runs[0]?.values).toEqual(['2026-01-31T00:00:00.000Z', '2026-01-31T08:00:00.000Z', "' or 1=1", 'ann'])
  })

  test('D21: rows beyond the limit are left out, and the response says so', async () => {
    const limits = { rows: { json: 2, csv: 2, xlsx: 2 }, timeoutMillis: 1000 }
    const { ask, store } = setUp({ limits })
    expect(JSON.parse(await bodyOf(await ask('/Open Approvals')))).toMatchObject({
      grouping: [{ data: [{ Who: 'Ann' }, {}] }],
      truncated: true,
    })
    expect(store.runs[0]).toMatchObject({ limit: 3, timeoutMillis: 1000 })
    expect(await bodyOf(await ask('/Open Approvals?format=csv'))).toMatch(
      /boss.*\r\nThe first 2 rows\. The others were left out\.\r\n$/,
    )
    expect(store.open).toBe(0)
    const exact = setUp({ limits: { ...limits, rows: { json: 3, csv: 3, xlsx: 3 } } })
    expect(await bodyOf(await exact.ask('/Open Approvals'))).not.toContain('truncated')
  })

  test('a failure half-way cuts off the response', async () => {
    const { ask, store } = setUp({ failsAfter: 2 })
    await expect(bodyOf(await ask('/Open Approvals'))).rejects.toThrow('went away')
    expect(store.open).toBe(0)
  })

  test('a field that is not selected is an internal error', async () => {
    const { ask, store } = setUp({ columns: ['id', 'Who'] })
    await expect(ask('/Open Approvals')).rejects.toMatchObject({ code: 'INTERNAL' })
    expect(store.open).toBe(0)
  })

  test('stops when the client disconnects', async () => {
    const { ask, store } = setUp()
    const leaving = new AbortController()
    const { body } = await ask('/Open Approvals', { signal: leaving.signal })
    expect(store.open).toBe(1)
    leaving.abort()
    expect(store.open).toBe(0)
    if (body instanceof Readable) body.destroy()
    const unread = await ask('/Open Approvals')
    if (unread.body instanceof Readable) unread.body.destroy()
    await expect.poll(() => store.open).toBe(0)
    const gone = AbortSignal.abort()
    await expect(ask('/Open Approvals', { signal: gone })).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' })
    expect(store.open).toBe(0)
  })

  test("D21: a user can't run many reports at the same time", async () => {
    const { ask } = setUp()
    const mine = [await ask('/Open Approvals'), await ask('/Open Approvals')]
    await expect(ask('/Open Approvals')).rejects.toMatchObject({ status: 429, retryAfter: 5 })
    const others = [await ask('/Open Approvals', { login: 'bob' }), await ask('/Open Approvals', { login: 'bob' })]
    await expect(ask('/Open Approvals', { login: 'eve' })).rejects.toMatchObject({ status: 429 })
    await Promise.all([...mine, ...others].map(bodyOf))
    expect((await ask('/Open Approvals')).status).toBe(200)
  })

  test('sequential reports do not wait for those that are just ending', async () => {
    const { ask } = setUp({ closing: () => delay(5) })
    for (const format of ['json', 'csv', 'json', 'csv']) {
      expect(await bodyOf(await ask(`/Open Approvals?format=${format}`))).toContain('First')
    }
  })

  test('HEAD runs nothing', async () => {
    const { ask, store } = setUp()
    const { status, body } = await ask('/Open Approvals', { method: 'HEAD' })
    expect({ status, body, runs: store.runs }).toEqual({ status: 200, body: undefined, runs: [] })
  })

  test.each(['POST', 'PUT', 'DELETE'])('D21: %s renders nothing of the POST body', async (method) => {
    for (const path of ['/Open Approvals', '/org/o1', '/excel/a/b']) {
      await expect(setUp().ask(path, { method })).rejects.toMatchObject({
        status: 405,
        headers: { allow: 'GET, HEAD' },
      })
    }
  })

  test('a path that does not decode is rejected', async () => {
    await expect(setUp().ask('/%E0%A4%A')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })
})

describe('files', () => {
  test('CSV has the fields of the group in each line', async () => {
    const response = await setUp().ask('/Open Approvals?format=csv')
    expect(response.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="Open-Approvals.csv"; filename*=UTF-8''Open%20Approvals.csv`,
    })
    expect(await bodyOf(response)).toBe(
      `\ufeffApproval,Who,__proto__\r\nFirst,Ann,open\r\nFirst,"Bob ""the boss""",\r\n,'=cmd|x,open\r\n`,
    )
  })

  test('a workbook is valid, and has no formula', async () => {
    const { ask, store } = setUp({ rows: [...rows, ['3', 'x', 'a\u0000\ud800<&>', 'y'.repeat(40_000)]] })
    const { headers, body } = await ask('/Open Approvals?format=xlsx')
    expect(headers['content-type']).toBe('application/vnd.openxmlformats-officedocument.spreadsheetml.sheet')
    if (!Buffer.isBuffer(body)) throw new Error('not a file')
    const files = unzipped(body)
    expect(files.get('xl/worksheets/sheet1.xml')).toMatch(/<row/)
    expect([...files.values()].join('')).not.toMatch(/<f[ >]/)
    const texts = Array.from(
      files.get('xl/sharedStrings.xml')?.matchAll(/<t[^>]*>([^<]*)<\/t>/g) ?? [],
      ([, each]) => each,
    )
    expect(texts).toContain('=cmd|x')
    expect(texts).toContain('a&lt;&amp;&gt;')
    expect(Math.max(...texts.map((each) => each?.length ?? 0))).toBe(32_767)
    expect(texts.slice(0, 4)).toEqual(['Open Approvals', 'All that wait', 'Approval', 'First'])
    expect(store.open).toBe(0)
  })

  test('D21: a file is created again for the user who requested it, while they may see it', async () => {
    const { ask, store, time } = setUp()
    const { reportid } = JSON.parse(await bodyOf(await ask('/Open Approvals?excel=true')))
    expect(store.runs).toEqual([])
    const { body } = await ask(`/excel/${reportid}/anything.xlsx`)
    expect(Buffer.isBuffer(body) && body.subarray(0, 2).toString()).toBe('PK')
    const gone = { code: 'NOT_FOUND', publicText: 'Report no longer available' }
    await expect(ask(`/excel/${reportid}/a`, { login: 'bob' })).rejects.toMatchObject(gone)
    await expect(ask(`/excel/${reportid}/a`, { identity: 'ann' })).rejects.toMatchObject(gone)
    await expect(ask(`/excel/${reportid}/a`, { orgs: ['o2'] })).rejects.toMatchObject(gone)
    await expect(
      ask(`/excel/${reportid.slice(0, -9)}${reportid.at(-9) === 'A' ? 'B' : 'A'}${reportid.slice(-8)}/a`),
    ).rejects.toMatchObject(gone)
    await expect(ask(`/excel/${'x'.repeat(5000)}/a`)).rejects.toMatchObject(gone)
    time.now += 11 * 60_000
    await expect(ask(`/excel/${reportid}/a`)).rejects.toMatchObject(gone)
    expect(store.runs).toHaveLength(1)
  })
})

describe('a report that a page sends back', () => {
  const sheetOf = ({ body }: GatewayResponse): (string | undefined)[] =>
    Array.from(
      unzipped(body as Buffer)
        .get('xl/sharedStrings.xml')
        ?.matchAll(/<t[^>]*>([^<]*)<\/t>/g) ?? [],
      ([, each]) => each,
    )

  test('D21: becomes a workbook of the report itself, and of nothing that was sent', async () => {
    const { ask, store } = setUp()
    const report = JSON.parse(await bodyOf(await ask('/Open Approvals')))
    for (const group of report.grouping) for (const [id, row] of group.data.entries()) row.id = id
    const forged = {
      ...report,
      name: 'Payroll',
      grouping: [{ header: { Approval: 'forged' }, data: [{ Who: 'forged' }] }],
    }
    for (const sent of [{ ...report, when: 'now' }, { reportid: report.reportid }, forged]) {
      const answer = await ask('/excelx', { method: 'PUT', body: JSON.stringify(sent) })
      expect(answer.headers).toMatchObject({
        'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
        'content-disposition': expect.stringContaining('Open-Approvals.xlsx'),
        'cache-control': 'no-store',
      })
      const texts = sheetOf(answer)
      expect(texts.slice(0, 4)).toEqual(['Open Approvals', 'All that wait', 'Approval', 'First'])
      expect(texts).toContain('=cmd|x')
      expect(texts.join()).not.toMatch(/forged|Payroll|now/)
    }
    expect(store.open).toBe(0)
  })

  test('D21: runs with the same values, for the same caller, who may still see it, for an hour', async () => {
    const { ask, store, time } = setUp({ columns: ['id'], rows: [['1']] })
    const asked = await ask('/Changes?beginDate=2030-01-01&endDate=2030-01-02&userKey=bob')
    const body = await bodyOf(asked)
    const put = (more: object = {}) => ask('/excelx', { method: 'PUT', body, ...more })
    expect((await put()).status).toBe(200)
    expect(store.runs[1]?.values).toEqual(store.runs[0]?.values)
    const gone = { code: 'NOT_FOUND', publicText: 'Report no longer available' }
    await expect(put({ login: 'bob' })).rejects.toMatchObject(gone)
    await expect(put({ identity: 'ann' })).rejects.toMatchObject(gone)
    await expect(put({ orgs: ['o1'] })).rejects.toMatchObject(gone)
    time.now += 61 * 60_000
    await expect(put()).rejects.toMatchObject(gone)
    expect(store.runs).toHaveLength(2)
  })

  test.each([
    ['[]', 'BAD_REQUEST'],
    ['{"name":"Open Approvals","grouping":[]}', 'BAD_REQUEST'],
    ['{"reportid":7}', 'BAD_REQUEST'],
    ['{"reportid":"x"}', 'NOT_FOUND'],
    ['{"reportid":', 'INVALID_JSON'],
    ['{"reportid":"x', 'INVALID_JSON'],
    ['7', 'BAD_REQUEST'],
    ['["reportid","x"]', 'BAD_REQUEST'],
    ['[{"reportid":"x"}]', 'BAD_REQUEST'],
    ['{"x":{"reportid":"x"}}', 'BAD_REQUEST'],
    ['{"x":"reportid"}', 'BAD_REQUEST'],
    [String.raw`{"x":"\",\"reportid\":\"x\""}`, 'BAD_REQUEST'],
    [String.raw`{"reportid":"\x"}`, 'BAD_REQUEST'],
    [String.raw`{"x":[{"y":["}"]}],"report\u0069d" : "x" }`, 'NOT_FOUND'],
  ])('%s is refused with %s', async (body, code) => {
    await expect(setUp().ask('/excelx', { method: 'PUT', body })).rejects.toMatchObject({ code })
  })

  test('with a reference that is too long is refused', async () => {
    const body = JSON.stringify({ reportid: 'x'.repeat(5_000) })
    await expect(setUp().ask('/excelx', { method: 'PUT', body })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('is searched in pieces of any size, and never as a whole', async () => {
    const { ask } = setUp()
    const { reportid } = JSON.parse(await bodyOf(await ask('/Open Approvals')))
    const text = Buffer.from(
      JSON.stringify({ name: '"Grüße\\"', grouping: [{ data: [{ reportid: 'no' }] }], reportid }),
    )
    for (const length of [1, 7]) {
      const pieces = Array.from({ length: Math.ceil(text.length / length) }, (_, i) =>
        text.subarray(i * length, (i + 1) * length),
      )
      const answer = await ask('/excelx', {
        method: 'PUT',
        body: 'sent in pieces',
        parts: {
          body: () => Promise.reject(new Error('the body is not built')),
          readBody: async (take) => pieces.forEach(take),
        },
      })
      expect(answer.status).toBe(200)
    }
  })

  test('is refused before it is read while two of the same user, or 16 of all, still arrive', async () => {
    const { ask } = setUp()
    const finish: (() => void)[] = []
    let reads = 0
    const slow = (login: string) =>
      ask('/excelx', {
        method: 'PUT',
        login,
        body: 'slow',
        parts: {
          readBody: async (take) => {
            reads++
            await new Promise<void>((resolve) => finish.push(resolve))
            take(Buffer.from('{"reportid":"x"}'))
          },
        },
      })
    const arriving = Array.from({ length: 16 }, (_, i) => slow(`user${Math.floor(i / 2)}`).catch(({ code }) => code))
    const busy = { code: 'TOO_MANY_REQUESTS', retryAfter: 5 }
    await expect(slow('user0')).rejects.toMatchObject(busy)
    await expect(slow('another')).rejects.toMatchObject(busy)
    expect(reads).toBe(16)
    // Bodies that arrive take no place of a report.
    expect((await ask('/Open Approvals', { login: 'user0' })).status).toBe(200)
    for (const end of finish) end()
    expect(await Promise.all(arriving)).toEqual(Array(16).fill('NOT_FOUND'))
    await expect(ask('/excelx', { method: 'PUT', body: '{"reportid":"x"}' })).rejects.toMatchObject({ status: 404 })
  })

  test('is JSON, by PUT; GET says that the address exists', async () => {
    const { ask } = setUp()
    const text = { method: 'PUT', body: '{}', type: 'text/plain' }
    await expect(ask('/excelx', text)).rejects.toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' })
    await expect(ask('/excelx', { method: 'POST', body: '{}' })).rejects.toMatchObject({ status: 405 })
    expect(await ask('/excelx')).toEqual({ status: 204, headers: { 'cache-control': 'no-store' } })
    expect(await ask('/excelx', { method: 'HEAD' })).toMatchObject({ status: 204 })
  })
})

const spec = { name: 'Requests', sql: 'select nothing from report_requests' }
const reports = new Map([['requests', { name: 'requests', namespace: 'default', at: 'reports.yaml:3:1', spec }]])

function create(failure: GatewayError | undefined) {
  const warned: string[] = []
  const store = new MemoryReports()
  store.check = async () => {
    if (failure !== undefined) throw failure
  }
  const log = { ...silentLogger, warn: (message: string) => void warned.push(message) }
  const created = createReports(reports, { store, secrets: fakeSecretBox('report'), clock: () => new Date(), log })
  return { created, warned }
}

test('a statement that the database rejects is reported with its place', async () => {
  const { created } = create(new GatewayError('INTERNAL', 'no such column: nothing'))
  await expect(created).rejects.toThrow(
    'reports.yaml:3:1: spec.sql: the database does not understand it: no such column: nothing',
  )
})

test('a database that does not answer does not prevent the start', async () => {
  const { created, warned } = create(new GatewayError('TARGET_UNREACHABLE', 'gone'))
  await created
  expect(warned).toEqual(['the reports were not checked against the database'])
  const fine = create(undefined)
  await fine.created
  expect(fine.warned).toEqual([])
})
