import { describe, expect, test } from 'vitest'
import { until } from '#testing/gateway/gateway-process.ts'
import { unzipped } from '#testing/gateway/unzipped.ts'
import { usePortalApi } from '#testing/stories/portal-api-story.ts'

describe('reports', () => {
  const { send, sendAnonymously } = usePortalApi()
  const get = (path: string, as = 'ada') => send(path, { as })
  const put = (path: string, body: unknown, as: string) => send(path, { as, method: 'PUT', body })
  const json = async (path: string, as = 'ada') => {
    const response = await get(path, as)
    const body = await response.text()
    expect({ path, status: response.status, body }).toMatchObject({ status: 200 })
    return JSON.parse(body)
  }
  const today = new Date().toISOString().slice(0, 10)
  const reason = '=HYPERLINK("http://evil.example","on call")'

  test('a user who sees an org sees its reports, with their parameters', async () => {
    expect(await json('/reports/org/root')).toEqual({
      reports: [
        {
          name: 'My Open Requests',
          description: 'Your open requests, and who can decide about them',
          orgID: 'root',
          parameters: [],
        },
        {
          name: 'Approvals Completed by Me',
          description: 'All that you approved or denied',
          orgID: 'root',
          parameters: [],
        },
      ],
    })
    const administrators = await json('/reports/org/operations', 'linus')
    expect(administrators.reports.map(({ parameters }: { parameters: string[] }) => parameters.join())).toEqual([
      '',
      'beginDate,endDate',
      'userKey',
      'beginDate,endDate',
    ])
    expect((await get('/reports/org/operations')).status).toBe(404)
  })

  test("a request is in the requester's report, until it is decided", async () => {
    const asked = [{ uuid: crypto.randomUUID(), name: 'vault-access', reason }]
    expect(await (await put('/workflows', asked, 'ada')).text()).toContain('success')
    let open: { grouping: { header: object; data: Record<string, string>[] }[] } = { grouping: [] }
    await until(async () => {
      open = await json('/reports/My%20Open%20Requests')
      return open.grouping.length > 0
    }, 20_000)
    expect(open).toMatchObject({
      name: 'My Open Requests',
      headerFields: ['Approval', 'Workflow Name', 'Request Reason'],
      dataFields: ['Login', 'First Name', 'Last Name', 'Email'],
      grouping: [{ header: { 'Workflow Name': 'vault-access', 'Request Reason': reason } }],
    })
    expect(open.grouping[0]?.data.map(({ Login }) => Login)).toContain('grace')
    expect((await json('/reports/my open requests', 'grace')).grouping).toEqual([])
    const { approvals } = await json('/approvals', 'grace')
    const decided = await put(`/approvals/${approvals[0].approval}`, { approved: true, reason: 'fine' }, 'grace')
    expect(decided.status).toBe(200)
    expect((await json('/reports/My%20Open%20Requests')).grouping).toEqual([])
    expect((await json('/reports/Approvals%20Completed%20by%20Me', 'grace')).grouping).toMatchObject([
      { header: {}, data: [{ Subject: 'ada', 'Approval Result': 'Approved' }] },
    ])
  })

  test('administrators see decisions and changes by period and user', async () => {
    const decisions = await json(`/reports/Completed Approvals?beginDate=${today}&endDate=${today}`, 'linus')
    expect(decisions.grouping[0].data).toMatchObject([{ Subject: 'ada', 'Decided By': 'grace', Comment: 'fine' }])
    const none = await json('/reports/Completed Approvals?beginDate=0&endDate=86400000', 'linus')
    expect(none.grouping).toEqual([{ header: {}, data: [] }])
    let log: { grouping: { header: object; data: object[] }[] } = { grouping: [] }
    await until(async () => {
      log = await json('/reports/Single User Change Log?userKey=ADA', 'linus')
      return log.grouping.length > 0
    }, 20_000)
    expect(log.grouping[0]).toMatchObject({ header: { 'Workflow Name': 'vault-access' } })
    expect(log.grouping[0]?.data.length).toBeGreaterThan(0)
    const changes = await json(`/reports/Change Log for Period?beginDate=${today}&endDate=${today}`, 'linus')
    expect(changes.grouping[0].data.length).toBeGreaterThan(0)
    expect((await json("/reports/Single User Change Log?userKey=' or 1=1 --", 'linus')).grouping).toEqual([])
  })

  test('D21: reports that the caller may not see do not exist, and missing parameters are reported', async () => {
    const [hidden, absent] = [await get('/reports/Open%20Approvals'), await get('/reports/Nothing')]
    expect([hidden.status, absent.status]).toEqual([404, 404])
    expect(await hidden.json()).toMatchObject({ errors: ['Report not found'] })
    expect(await absent.json()).toMatchObject({ errors: ['Report not found'] })
    const incomplete = await get('/reports/Completed%20Approvals?beginDate=x', 'linus')
    expect(incomplete.status).toBe(400)
    expect(await incomplete.json()).toMatchObject({
      errors: [expect.stringMatching(/beginDate must be.*endDate is required/)],
    })
    expect((await put('/reports/excelx', { name: 'x', grouping: [] }, 'ada')).status).toBe(400)
    expect((await sendAnonymously('/reports/org/root')).status).toBe(401)
  })

  test('D21: files contain no formulas', async () => {
    const asked = [{ uuid: crypto.randomUUID(), name: 'vault-access', reason }]
    await put('/workflows', asked, 'ada')
    await until(async () => (await json('/reports/My%20Open%20Requests')).grouping.length > 0, 20_000)
    const csv = await get('/reports/My%20Open%20Requests?format=csv')
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(csv.headers.get('content-disposition')).toMatch(/^attachment; filename="My-Open-Requests\.csv"/)
    expect(await csv.text()).toContain(`"'=HYPERLINK(""http://evil.example"",""on call"")"`)
    const { reportid } = await json('/reports/My%20Open%20Requests?excel=true')
    const files = [
      await get(`/reports/excel/${reportid}/report.xlsx`),
      await get('/reports/My%20Open%20Requests?format=xlsx'),
    ]
    for (const file of files) {
      expect(file.status).toBe(200)
      const contents = unzipped(Buffer.from(await file.arrayBuffer()))
      expect(contents.get('xl/sharedStrings.xml')).toContain('=HYPERLINK(')
      expect(contents.get('xl/worksheets/sheet1.xml')).not.toMatch(/<f[ >]/)
    }
    expect((await get(`/reports/excel/${reportid}/report.xlsx`, 'grace')).status).toBe(404)
  })
  test('a workbook is refused while two bodies of the same user still arrive, and a large body is not built', async () => {
    const { reportid } = await json('/reports/My%20Open%20Requests')
    const end: (() => void)[] = []
    const arriving = Array.from({ length: 2 }, () => {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          const send = (text: string) => controller.enqueue(Buffer.from(text))
          send('{"grouping":[')
          end.push(() => {
            // More values than the gateway would build.
            for (let i = 0; i < 100; i++) send(`${'[1],'.repeat(30_000)}`)
            send(`[]],"reportid":${JSON.stringify(reportid)}}`)
            controller.close()
          })
        },
      })
      return put('/reports/excelx', body, 'ada')
    })
    const more = () => put('/reports/excelx', { reportid: 'unknown' }, 'ada')
    await until(async () => (await more()).status === 429, 20_000)
    expect((await put('/reports/excelx', { reportid: 'unknown' }, 'grace')).status).toBe(404)
    for (const finish of end) finish()
    expect((await Promise.all(arriving)).map(({ status }) => status)).toEqual([200, 200])
    expect((await more()).status).toBe(404)
  })
})
