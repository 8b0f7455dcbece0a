import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ReportSpec } from '#config/kinds/portal.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { readReport } from './report-statement.ts'
import { reportViews } from './report-views.ts'

const all = { beginDate: true, endDate: true, userKey: true, currentUser: true }
const read = (sql: string, more: Partial<ReportSpec> = {}) => readReport({ name: 'r', sql, parameters: all, ...more })
const problems = (sql: string): readonly string[] => read(sql).problems

describe('accepted statements', () => {
  test.each([
    'select 1',
    'select * from report_requests',
    'SELECT r.id, r.reason AS "Why", count(*) n FROM Report_Requests r GROUP BY r.id, r.reason HAVING count(*) > 1;',
    "select case when state = 'open' then 'yes; it''s -- open' else null end as o from report_approvals -- the end;",
    'select a.id from report_approvals a left join report_approvers b on b.approval = a.id, report_people as "P" where 1 = 1',
    'select a.id from report_approvals a join (report_approvers b cross join report_people c) on lower(c.login) = lower(b.approver)',
    'select id from (select id from report_requests where subject in (select login from report_people)) x order by 1 limit 5',
    'with o as (select id from report_approvals), p as (select id from o) select p.id from p union all select id from o',
    'select id from report_requests where not exists (select 1 from report_steps s where s.request = report_requests.id)',
    'select row_number() over (partition by subject order by started desc) as n from report_requests',
    "select extract(year from now()) as y, substring(id from 1 for 2), trim(both ' ' from id) from report_requests",
    'select id from report_requests where caller is not distinct from requestor and ended is distinct from started',
    "select left(id, 2), cast(number as varchar(5)), at::date, at >= '2026' from report_changes join report_steps on left(id, 1) = 'x'",
    "select string_agg(approver, ', ' order by approver) filter (where approver <> '') as a from report_approvers group by approval",
    '/* one */ select id from report_requests where started between :beginDate and :endDate and subject = :userKey',
  ])('%s', (sql) => {
    expect(problems(sql)).toEqual([])
  })
})

describe('rejected statements', () => {
  test.each([
    ['', 'must be a select'],
    ['delete from report_requests', 'must be a select'],
    ['with x as (delete from runs returning id) select id from x', 'must be a select'],
    ['with recursive x as (select 1) select 1 from x', '"recursive"'],
    ['select 1; select 2', 'must be one statement'],
    ['select 1;;', 'must be one statement'],
    ['select id into other from report_requests', '"into"'],
    ['select id from report_requests for update', '"for"'],
    ['select id from sessions', 'reads "sessions"'],
    ['select id from report_requests, sessions', 'reads "sessions"'],
    ['select id from report_requests *, sessions', '"*"'],
    ['select id from report_requests not indexed, sessions', '"indexed"'],
    ['select id from report_requests r natural left outer join "sessions"', 'reads "sessions"'],
    ['select id from (report_requests cross join sessions)', 'reads "sessions"'],
    ['select id from only sessions', 'reads "only"'],
    ['select (select id from sessions) from report_requests', 'reads "sessions"'],
    ['select 1 where exists ((select id from sessions))', 'reads "sessions"'],
    ['select ((select 1) union select id from sessions)', '"union"'],
    ['select 1 union (select id from sessions)', '"("'],
    ['select 1 union table sessions', '"table"'],
    ['select (from sessions)', '"from"'],
    ['select lower(id from sessions) from report_requests', '"from"'],
    ['select id from report_requests where id in sessions', 'parentheses after "in"'],
    ['select id from report_requests order by (select id from sessions)', 'reads "sessions"'],
    ['select * from (with a as (select 1) select id from sessions) x', '"with"'],
    ['with a as (select id from sessions), sessions as (select 1) select 1 from a', 'reads "sessions"'],
    ['with sessions as (select id from sessions) select 1 from sessions', 'reads "sessions"'],
    ['select id from public.sessions', 'by their name alone'],
    ["select * from pragma_table_info('runs')", 'by their name alone'],
    ["select id from 'sessions'", '"\'sessions\'"'],
    ['select id from [sessions]', 'double quotes'],
    ['select id from `sessions`', 'reads "sessions"'],
    ['select id from `sessions', 'quote'],
    ['select `pg_sleep`(10)', 'calls "pg_sleep"'],
    ['select if(1 = 1, (select id from sessions), 2) as x from report_requests', 'reads "sessions"'],
    ['select if(1 = 1, 2) as x from report_requests', 'in a form that is not known'],
    ['select curdate(1) from report_requests', 'in a form that is not known'],
    ['select date_sub(started, interval 1 month) from report_requests', 'in a form that is not known'],
    ['select date_sub(started, interval pg_sleep(1) day) from report_requests', 'calls "pg_sleep"'],
    ["select query_to_xml('select 1', true, true, '')", 'calls "query_to_xml"'],
    ['select pg_catalog.lower(id) from report_requests', 'calls "lower"'],
    ['select "pg_sleep"(10)', 'calls "pg_sleep"'],
    ['select count(pg_sleep(10)) from report_requests', 'calls "pg_sleep"'],
    ['select id from report_requests join report_steps on pg_sleep(1) = 1', 'calls "pg_sleep"'],
    ['select $$ text $$', 'is not understood at "$$'],
    ["select e'\\'' from report_requests", 'is not understood'],
    ["select U&'x'", 'is not understood'],
    ['select /* a /* b */ 1 */ from sessions', 'comment'],
    ["select 'open", 'quote'],
    ['select id from report_requests where (id = 1', 'ends too early'],
    ['select id from report_requests)', '")"'],
    ['select id from report_requests where id = :other', ':other'],
    ['values (1)', 'must be a select'],
    [`select ${'('.repeat(100)}1${')'.repeat(100)}`, 'nested too deep'],
    [`select '${'x'.repeat(20_000)}'`, 'longer than'],
  ])('%s', (sql, expected) => {
    expect(problems(sql)).toEqual([expect.stringContaining(expected)])
    expect(read(sql).statement).toBeUndefined()
  })

  test('a table that is not a view is found at any place', () => {
    const word = fc.constantFrom(
      ...`select from where and or in ( ) , . * = as on join left natural union all with distinct is not exists a report_requests
      report_people "x" 'text' 1 order by group limit case when then else end using lateral only for`.split(/\s+/),
    )
    const property = fc.property(
      fc.array(word, { maxLength: 12 }),
      fc.array(word, { maxLength: 8 }),
      (before, after) => {
        const sql = ['select', ...before, 'from', 'sessions', ...after].join(' ')
        return read(sql).statement === undefined || !readsSessions(sql)
      },
    )
    fc.assert(property, { numRuns: sampled(600, 3000) })
  })

  /** Only if the last `from` before it belongs to `is distinct from` is the name that of a column. */
  const readsSessions = (sql: string): boolean => !/is (?:not )?distinct from sessions/.test(sql)
})

describe('OpenUnison’s reports', () => {
  const sqlOf = (sql: string, more: Partial<ReportSpec> = {}): string => {
    const { statement, problems: found } = read(sql, more)
    expect(found).toEqual([])
    return statement?.parts.join(' ? ') ?? ''
  }

  test('read our views in place of its tables, whatever they are called in the statement', () => {
    for (const sql of [
      'select t.id from targets t',
      'select t.id from targets as t',
      'select T.ID from TARGETS T',
      'select t.`id` from `targets` `t`',
    ]) {
      expect(sqlOf(sql).toLowerCase(), sql).toMatch(
        /from \(select distinct target .+ from report_changes .+\) (?:as )?"?t"?$/,
      )
    }
    expect(sqlOf('select targets.id from targets')).toMatch(/\) as targets$/)
    expect(sqlOf('with targets as (select id from report_requests) select id from targets')).not.toContain('distinct')
  })

  test('keep texts, names and comments that look like its tables', () => {
    const sql = 'select \'from users, `x`\' as "users", name as "from targets" from auditLogType -- from users'
    expect(sqlOf(sql)).toMatch(/^select 'from users, `x`' as "users" , name as "from targets" from \(select 1 as id/)
    expect(
      sqlOf('select users from report_steps join report_requests workflows on workflows.id = request'),
    ).not.toContain('(')
  })

  test('compare logins in lower case, and only in statements on its tables', () => {
    const parameters = { userKey: true, beginDate: true }
    const places = read('select id from users where userKey = ? or id > ?', { parameters }).statement
    expect(places).toMatchObject({
      places: ['beginDate', 'userKey'],
      parts: [expect.stringMatching(/userKey =$/), expect.stringMatching(/lower\($/), ')'],
    })
    expect(read('select id from report_requests where subject = :userKey').statement?.parts).toEqual([
      'select id from report_requests where subject =',
      '',
    ])
  })

  test('in MariaDB’s form get functions of PostgreSQL and SQLite', () => {
    const sql =
      "select if(a = 1, 'x, y', if(b = 2, 'z', 'w')) as `The A`, datediff(curdate(), started) d from report_requests"
    expect(read(sql, { dataFields: ['The A', 'd'] })).toMatchObject({ problems: [], missing: [] })
    expect(read(sql).statement).toMatchObject({
      parts: [
        `select case when a = 1 then 'x, y' else case when b = 2 then 'z' else 'w' end end as "The A" , (cast( cast(now() at time zone 'UTC' as date) as date) - cast( started as date)) d from report_requests`,
      ],
      sqliteParts: [
        expect.stringContaining("cast(julianday(date( date('now') )) - julianday(date( started )) as integer) d"),
      ],
    })
  })

  test('that cannot be read from our views name the view, in both forms', () => {
    expect(problems('select workflows.description from workflows')).toEqual([
      'reads "description" of "workflows", which has no counterpart here: use report_requests',
    ])
    expect(problems('select w.`description` from `workflows` w')).toEqual([
      expect.stringContaining('use report_requests'),
    ])
    expect(problems('select 1 from `escalation`, workflowParameters')).toEqual([
      'reads "escalation", which is not open to reports: use "escalation" of report_approvals',
      'reads "workflowParameters", which is not open to reports: use report_requests',
    ])
    for (const sql of [
      'select json_value(val) from auditLogs join `targets` on 1 = 1',
      'select val from [auditLogs] join [targets] on 1 = 1',
    ]) {
      expect(problems(sql)).toEqual([
        expect.stringMatching(
          /For OpenUnison's tables: auditLogs: use report_changes; targets: use "target" of report_changes$/,
        ),
      ])
    }
    expect(problems('select 1 from sessions')).toEqual([expect.stringContaining('there are report_requests, ')])
  })

  test.each([
    ["select value from userAttributes where name = 'department'", 'reads the attribute "department"'],
    ["select value from userAttributes where userAttributes.name = 'sn' or name in ('x')", 'other than with "="'],
    ["select value from userAttributes where name like '%'", 'other than with "="'],
    ["select value from approverAttributes where name <> 'sn'", 'other than with "="'],
  ])('%s is not run, since views have few attributes', (sql, problem) => {
    expect(problems(sql)).toEqual([expect.stringContaining(problem)])
  })

  test('a name of another table is not that of an attribute', () => {
    const sql = `select (select value from userAttributes where name='givenName' and userid=workflows.userid) as v
      from workflows where name = 'department'`
    expect(sqlOf(sql)).toMatch(/name = 'givenname' and .+ where name = 'department'$/)
  })

  test('count the runs at each login only where they are asked for', () => {
    expect(sqlOf("select userid from workflows where name = 'jitdb'")).toContain('report_logins')
    expect(sqlOf("select userid from workflows where name = 'join'")).not.toContain('report_logins')
    expect(sqlOf("select userid from workflows where 'jitdb' = label")).not.toContain('report_logins')
  })

  test('a column is named in double quotes', () => {
    expect(problems("select id as 'The Id' from report_requests")).toEqual([
      'must have the name of a column in double quotes: as "The Id"',
    ])
  })

  test('question marks are the declared parameters in OpenUnison’s order', () => {
    const sql = 'select id from report_requests where subject = ? and started > ?'
    expect(read(sql, { parameters: { currentUser: true, beginDate: true } }).statement?.places).toEqual([
      'beginDate',
      'currentUser',
    ])
    expect(read(sql, { parameters: { currentUser: true } }).problems).toEqual([
      'has 2 question marks for the parameters that are declared: currentUser',
    ])
    expect(problems('select id from report_requests where id = ? or id = :userKey')).toEqual([
      'must have either named places or question marks',
    ])
  })
})

describe('placeholders and fields', () => {
  test('the database gets no comments and no values', () => {
    const sql = `select id -- ;\n from report_requests /* x */ where subject = :userKey\nand ':userKey' <> requestor`
    expect(read(sql).statement).toEqual({
      parts: ['select id from report_requests where subject =', "and ':userKey' <> requestor"],
      places: ['userKey'],
    })
    expect(read('select 1 - -1').statement?.parts).toEqual(['select 1 - - 1'])
  })

  test('a parameter is declared if it is used, and used if it is declared', () => {
    const sql = 'select id from report_requests where subject = :userKey'
    expect(read(sql, { parameters: { endDate: true } }).problems).toEqual([
      'has :userKey, which needs parameters.userKey: true',
    ])
    expect(read(sql, { parameters: { userKey: true, endDate: true } }).unused).toEqual(['endDate'])
  })

  test.each([
    ['select id, label as "A b", r.state, count(*) total, max(opened) m from report_approvals r', []],
    ['select * from report_approvals', []],
    ['select r.*, 1 as one from report_approvals r', []],
    [
      'select count(*), case when 1 = 1 then 1 end, id is null, 5 from report_approvals',
      ['id', 'A b', 'STATE', 'total', 'm'],
    ],
    [
      'select id as total, state from report_approvals union select label, id from report_approvals',
      ['id', 'A b', 'm'],
    ],
  ])('%s lacks %j', (sql, missing) => {
    const dataFields = ['A b', 'STATE', 'total', 'm']
    expect(new Set(read(sql, { groupings: true, groupBy: 'm', headerFields: ['id'], dataFields }).missing)).toEqual(
      new Set(missing),
    )
  })
})

test('no table has the name of a view', () => {
  expect(Object.keys(reportViews).every((name) => name.startsWith('report_'))).toBe(true)
})
