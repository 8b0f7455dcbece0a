import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import webhook from '#adapters/targets/webhook/webhook.ts'
import type { Target } from '#sdk/target/target.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'

const folder = 'examples/webhook-target'
const secret = (name: string): string => readFileSync(`${folder}/secrets/crm/${name}`, 'utf8').trim()

/** The secrets that the application and the gateway share. */
export const crmSecrets = { bearerToken: secret('token'), signingSecret: secret('signing-secret') }

/** The application of examples/webhook-target as its own process. */
export interface CrmApplication {
  readonly url: string
  /** The variables that give the example's configuration its address. */
  readonly environment: Readonly<Record<string, string>>
  /** SIGKILL, and back on the same port and data. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export async function startCrmApplication(data = ':memory:', more: readonly string[] = []): Promise<CrmApplication> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/api`
  const environment = { CRM_URL: url }
  const start = async () => {
    const args = [`${folder}/app/server.ts`, '--port', String(port), '--data', data, ...more]
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`the application ended with ${child.exitCode}`)
      return (await fetch(url).catch(() => undefined)) !== undefined
    }, 60_000)
    return child
  }
  let running = await start()
  const kill = async (): Promise<void> => {
    if (running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGKILL')
    await ended
  }
  return {
    url,
    environment,
    restart: async () => {
      await kill()
      running = await start()
    },
    stop: kill,
  }
}

/** The parameters of the example's YAML, with the given changes. */
export function crmParams(given: ParamValues): ParamValues {
  const documents = parseAllDocuments(readFileSync(`${folder}/crm.yaml`, 'utf8')).map((document) => document.toJS())
  const { spec } = documents.find(({ kind }) => kind === 'Target') as { spec: { params: ParamValues } }
  return { ...spec.params, ...crmSecrets, ...given }
}

/** A target with these parameters, which must be valid. */
export async function openWebhook(params: ParamValues): Promise<Target> {
  const issues = noIssues()
  const prepared = webhook.prepare(fakeParams(params, Object.keys(crmSecrets)), issues, fakeParseContext())
  const problems = issueTexts(issues.list)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return prepared.create(fakeModuleHost())
}
