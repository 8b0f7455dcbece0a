import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'
import { coreUser } from '#testing/scim/scim-client.ts'
import { scimServers } from '#testing/scim/scim-story.ts'
import { firstOf } from './suites.ts'

const python = inject('judgesPython')
const run = promisify(execFile)

interface Verdict {
  readonly status: string
  readonly check: string
  readonly message: string
}

/** Prints the number of each status, and returns the verdicts that are not good. */
function report(judge: string, verdicts: readonly Verdict[], ...good: string[]): string[] {
  const counts = [...Map.groupBy(verdicts, ({ status }) => status)].map(([status, list]) => `${list.length} ${status}`)
  console.log(`${judge}: ${verdicts.length} checks: ${counts.join(', ')}`)
  return verdicts
    .filter(({ status }) => !good.includes(status))
    .map(({ status, check, message }) => `${status} ${check}: ${message}`)
}

/** The program's output, even if it ends with an error, which for a judge means that something failed. */
async function judge(args: readonly string[], environment: Record<string, string> = {}): Promise<unknown> {
  const options = { env: { ...process.env, ...environment }, timeout: 100_000, maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await run(python, [...args], options).catch((error: { stdout?: string; stderr?: string }) => {
    if (error.stdout) return { stdout: error.stdout }
    throw new Error(`the judge did not finish: ${error.stderr ?? ''}`, { cause: error })
  })
  return JSON.parse(stdout)
}

describe.skipIf(python === '')('outside judges of a gateway with `mapping: scim` on the database', () => {
  const servers = scimServers()
  const client = (path: string) => firstOf(servers).client(path)

  // It compares the members that it sent with those that it reads. The gateway fills `display`, which /Schemas
  // announces as readOnly, so these two comparisons differ by a part that the client could not have sent.
  const sent = /value='([^']+)', ref='([^']+)', type='User', display=None/
  const differsByDisplayAlone = (line: string): boolean => {
    const [, id = '', address = ''] = sent.exec(line) ?? []
    const isMembers = /^ERROR check_(?:add|replace)_attribute: Attribute 'members'/.test(line)
    const start = `Returned value: [Members(value='${id}', ref='${address}', type='User', display='`
    return isMembers && id !== '' && line.includes(start)
  }

  test('scim2-tester finds no failure', async () => {
    const { base, token } = client('/scim/v2')
    const results = await judge(['test/support/scim/python/scim2_judge.py', base], { SCIM_TOKEN: token })
    const checks = results as { status: string; title: string; resourceType: string; reason: string }[]
    const verdicts = checks.map(({ status, title, reason }) => ({ status, check: title, message: reason }))
    const failures = report('scim2-tester', verdicts, 'SUCCESS', 'COMPLIANT', 'ACCEPTABLE')
    expect(failures.filter((line) => !differsByDisplayAlone(line))).toEqual([])
    for (const type of ['User', 'Group']) {
      expect(checks.filter(({ resourceType }) => resourceType === type).length).toBeGreaterThan(5)
    }
  })

  // Its probe adds a member with the id "fake-member-id" to a group. In RFC 7643 4.2, `members.value` is the id of a
  // resource, so this gateway rejects an unknown one (400 invalidValue). Here a user has that id, on the gateway whose
  // ids are logins, and no part of the probe is skipped.
  test.each([
    ['strict', ['--strict']],
    ['as Entra ID', ['--strict', '--profile', 'entra']],
  ])('scim-sanity, %s, finds no failure', async (name, options) => {
    const { base, token } = client('/scim/logins')
    const member = { schemas: [coreUser], userName: 'fake-member-id' }
    expect([201, 409]).toContain((await client('/scim/logins').post('/Users', member)).status)
    const args = ['-m', 'scim_sanity', 'probe', base, '--token', token, '--json-output', '--i-accept-side-effects']
    const { results } = (await judge([...args, ...options])) as {
      results: { status: string; name: string; message?: string }[]
    }
    const verdicts = results.map(({ status, name: check, message = '' }) => ({ status, check, message }))
    // Agents are from a draft; a server that does not advertise them is not tested for them.
    const failures = report(`scim-sanity, ${name}`, verdicts, 'pass').filter((line) => !/^skip Agent/.test(line))
    expect(failures).toEqual([])
    expect(verdicts.filter(({ status }) => status === 'pass').length).toBeGreaterThan(25)
  })
})
