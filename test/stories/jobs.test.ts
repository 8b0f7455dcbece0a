import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { migratedSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

/** Receives calls of jobs: the due time, the attempt and the gateway. */
async function startListener() {
  const heard: { readonly due: string; readonly attempt: string; readonly by: string }[] = []
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://x')
    const value = (name: string): string => searchParams.get(name) ?? ''
    heard.push({ due: value('due'), attempt: value('attempt'), by: value('by') })
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { heard, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function writeJob(url: string): string {
  const config = join(temporaryFolder(), 'config')
  mkdirSync(config)
  writeFileSync(
    join(config, 'job.yaml'),
    `apiVersion: openunison.tremolo.io/v1
kind: OUJob
metadata: {name: tell}
spec:
  className: com.tremolosecurity.provisioning.scheduler.jobs.JavaScriptJob
  cronSchedule: {seconds: "*", minutes: "*", hours: "*", dayOfMonth: "*", month: "*", dayOfWeek: "?", year: "*"}
  params:
    url: ${url}
    by: "#[GATEHOUSE_URL]"
    javaScript: |-
      async function execute(job, { due, attempt, params }) {
        await fetch(params.url[0] + '/?' + new URLSearchParams({ due, attempt, by: params.by[0] }))
      }
`,
  )
  return config
}

// A SQLite file belongs to one process.
describe.skipIf(postgresUrl() === '')('a job on PostgreSQL', () => {
  test('runs once for each due time, also with two processes of which one is killed', {
    timeout: 240_000,
  }, async () => {
    const { heard, url } = await startListener()
    const config = writeJob(url)
    // A killed process keeps its claim for twice the lease.
    const args = ['--database', await migratedSchema(), '--workflow-lease-seconds', '5']
    const dataFolder = temporaryFolder()
    const first = await startGatewayProcess({ config, dataFolder, args })
    onTestFinished(async () => void (await first.stop()))
    const second = await startGatewayProcess({ config, dataFolder, args })
    onTestFinished(async () => void (await second.stop()))
    const before = heard.length
    await until(async () => heard.length >= before + 4, 60_000)
    // A scrape does not wait for a slow database; the next one shows the value.
    const told = async (figure: RegExp): Promise<boolean> =>
      figure.test(await (await fetch(`${first.metricsUrl}/metrics`)).text())
    await until(() => told(/gatehouse_job_runs_total\{job="tell",outcome="done"\} [1-9]/), 30_000)
    await until(() => told(/gatehouse_workflow_runs\{state="ready"\} 0/), 30_000)
    first.process.kill('SIGKILL')
    const after = heard.length
    await until(async () => heard.slice(after + 3).some(({ by }) => by === second.url), 60_000)
    const runs = heard.map(({ due, attempt }) => `${due} ${attempt}`)
    expect(runs).toEqual([...new Set(runs)])
    expect(heard.filter(({ attempt }) => attempt === '1').length).toBeGreaterThan(5)
  })
})
