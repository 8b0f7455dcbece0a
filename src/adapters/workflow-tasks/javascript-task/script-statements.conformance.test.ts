import { expect, onTestFinished, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { openApplication, runOn } from '#testing/databases/sql-schema.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { noEffects } from '#testing/workflows/no-effects.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import javaScriptTask from './javascript-task.ts'

const context = (request: [string, unknown][]): TaskContext => ({
  user: { userID: 'ada', attributes: new Attributes(), groups: [], keepGroups: false },
  request: new Map(request),
  run: runHead({ id: '1', workflow: 'jit', requester: 'ada' }),
  log: silentLogger,
  effects: noEffects,
  forTarget: () => {
    throw new Error('a read needs no request of the target')
  },
})

onEachEmptyDatabase('a script of OpenUnison with statements', (freshUrl) => {
  /** Its `sql` is the statement; what it puts into `found` is returned. */
  async function open(params: ParamValues = {}) {
    const url = await freshUrl()
    const crm = await openApplication(url, params)
    const javaScript = `
      function doTask(user, request) {
        var sql = task.getConfigManager().getProvisioningEngine().getTarget("crm").getProvider().getDS().getConnection();
        try {
          var rows = sql.createStatement().executeQuery(request.get("sql")), found = [];
          while (rows.next()) found.push([rows.getString("TITLE"), rows.getString(2), rows.getInt("number")]);
          request.put("found", found);
        } finally {
          sql.close();
        }
        if (request.get("after") != null) sql.createStatement().executeQuery(request.get("after"));
        return true;
      }`
    const issues = noIssues()
    const prepared = javaScriptTask.prepare(
      fakeParams({ javaScript, timeoutSeconds: '60' }),
      issues,
      fakeParseContext(),
    )
    expect(issueTexts(issues.list)).toEqual([])
    const task = await prepared.create({ ...fakeModuleHost({ targets: { crm } }), name: 'jit' })
    onTestFinished(() => task.close?.())
    const read = async (sql: string, more: [string, unknown][] = []): Promise<unknown> => {
      const given = context([['sql', sql], ...more])
      await task.run(given)
      return given.request.get('found')
    }
    return { url, crm, read }
  }
  const titles = 'select title, about, crew_id as number from crews'

  const isFile = (url: string) => url.startsWith('sqlite:')
  const ofFiles = /scripts read PostgreSQL only, not "crm"/

  test('reads the rows', async () => {
    const { url, read } = await open()
    await runOn(url, "update crews set about = 'The first' where title = 'group1'")
    const reading = read(`${titles} where title like '%1' or title = 'group2' order by title `)
    if (isFile(url)) return expect(reading).rejects.toThrow(ofFiles)
    expect(await reading).toEqual([
      ['group1', 'The first', 1],
      ['group2', '', 2],
    ])
    expect(await read(`${titles} where title = 'none'`)).toEqual([])
  })

  test('changes nothing', async () => {
    const { url, read } = await open()
    const statements = [
      'delete from crews',
      "update crews set about = 'x' returning title, about, crew_id as number",
      'with gone as (delete from crews returning *) select title, about, crew_id as number from gone',
      `${titles}; delete from crews`,
      `${titles}) as a; delete from crews; select * from (${titles}`,
      "select set_config('transaction_read_only', 'off', false) as title, nextval('crews_crew_id_seq') as about, 1 as number",
      'drop table crew_people',
      'nonsense',
      '',
    ]
    const reason = isFile(url) ? ofFiles : /target "crm": /
    for (const sql of statements) await expect(read(sql), sql).rejects.toThrow(reason)
    const [left] = await runOn(url, 'select count(*) as number from crews where about is null')
    expect(Number(left?.['number'])).toBe(3)
    await runOn(url, 'select * from crew_people')
  })

  test('is bounded in time and rows, and afterwards others read as before', async () => {
    const { url, crm, read } = await open({ timeoutMillis: '1500', maxCons: '1' })
    if (isFile(url)) return
    const endless = `with recursive n(i) as (select 1 union all select i + 1 from n)
      select count(*) as title, '' as about, 0 as number from n`
    await expect(read(endless)).rejects.toThrow(/target "crm": /)
    const many = `select 'x' as title, '' as about, i as number from generate_series(1, 20001) as i`
    await expect(read(many)).rejects.toThrow(/returns more than 20000 rows/)
    expect(await read(many.replace('20001', '20000'))).toHaveLength(20_000)
    expect(await crm.findUser('nobody', [], {} as never)).toBeUndefined()
  })

  test('reads no more after close()', async () => {
    const { url, read } = await open()
    if (isFile(url)) return
    await expect(read(titles, [['after', titles]])).rejects.toThrow(/the connection is closed/)
  })
})
