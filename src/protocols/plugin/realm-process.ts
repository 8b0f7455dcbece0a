/**
 * The part of a plug-in's process that runs a script in separate realms. As a part of plugin-process.js it is
 * passed to the process as a text, stripped of its types, so it imports only Node.js itself.
 *
 * There are two kinds of realms. One, for the life of the process, has the runtime: the objects that scripts work
 * with. Each call gets a new one, in which the script runs from its beginning. Neither has anything of Node.js, and
 * only texts pass between them and the process.
 */
import { hash, randomUUID } from 'node:crypto'
import { type Context, constants, createContext, Script, SourceTextModule } from 'node:vm'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { PluginRealm } from '#protocols/plugin/plugin-messages.ts'

interface Runtime {
  furnish(global: object): void
  load(load: () => unknown): string
  call(load: () => unknown, name: string, args: string): string
}

interface Services {
  log(level: string, message: string): void
  audit(entry: object): void
}

export interface RealmOptions {
  readonly realm: PluginRealm
  /** The program of the thread that sends HTTP requests. */
  readonly httpProgram: string
  readonly proxyVariables: Readonly<Record<string, string>>
  readonly text: string
  readonly url: string
  readonly functions: readonly string[]
  readonly settings: object
  readonly timeoutMillis: number
  /** JSON for JSON. */
  askGateway(request: string): string
  log(level: string, message: string): void
}

const { stringify, parse } = JSON
/** The part of a call's time for HTTP, so that the script learns that there is no response. */
const httpShare = 0.8
const noCode = { codeGeneration: { strings: false, wasm: false } }

/** The functions of the script. They return at once. */
export async function openRealm(options: RealmOptions): Promise<Map<string, (...args: unknown[]) => unknown>> {
  const { realm, text, url, functions, settings } = options
  let services: Services = { log: options.log, audit: () => {} }
  const http = httpThread(options)
  dropWorkers()
  let httpEnds = 0

  function bridge(request: string, given: string): string {
    try {
      const value = parse(given)
      if (request === 'http') return http(given, httpEnds)
      if (request === 'gateway') return options.askGateway(stringify(value))
      if (request === 'random') return stringify(randomUUID())
      if (request === 'digest') return stringify(hash(value.algorithm, Buffer.from(value.bytes, 'base64'), 'hex'))
      if (request === 'log') services.log(String(value.level), String(value.message))
      if (request === 'audit') services.audit(value)
      return 'null'
    } catch (error) {
      return stringify({ failure: 'other', message: error instanceof Error ? error.message : 'failed' })
    }
  }

  const open = await runtimeOf(realm)
  const runtime = open(bridge, stringify({ ...settings, signatures: realm.signatures }))
  const script = new Script(text, { filename: url, importModuleDynamically: refuseImport })
  const lookUp = functions.map((name) => `${name}: typeof ${name} === 'function' ? ${name} : undefined`).join(', ')
  const functionsOf = new Script(`({ ${lookUp} })`)
  const load = (): unknown => {
    const context = newContext()
    runtime.furnish(context)
    script.runInContext(context)
    return functionsOf.runInContext(context)
  }

  const called = (name: string, args: unknown[]): unknown => {
    const own = args.find((arg) => typeof Object(arg).audit === 'function') as { log: Log; audit: Services['audit'] }
    services = { log: own === undefined ? options.log : logTo(own.log), audit: own?.audit ?? (() => {}) }
    httpEnds = Date.now() + options.timeoutMillis * httpShare
    const outcome = parse(runtime.call(load, name, stringify(args)))
    if (outcome.error !== undefined) throw thrownThere(outcome.error)
    for (const [i, arg] of args.entries()) replace(arg, outcome.args?.[i])
    return outcome.value
  }

  const loaded = parse(runtime.load(load))
  if (loaded.error !== undefined) throw thrownThere(loaded.error)
  return new Map((loaded.value as string[]).map((name) => [name, (...args: unknown[]) => called(name, args)]))
}

/** An error would be an object of the process, from which a script reaches all others. */
const refuseImport = (): Promise<never> => Promise.reject('a legacy script cannot import')

const thrownThere = (error: { message: string; stack?: string; code?: string }): Error =>
  Object.assign(new Error(error.message), error)

type Log = Record<string, (message: string) => void>

const logTo = (log: Log) => (level: string, message: string) => log[level]?.(message)

const newContext = (): Context => createContext(constants.DONT_CONTEXTIFY, noCode)

/** The runtime's modules, linked in a separate realm. */
async function runtimeOf({ modules, entry }: PluginRealm): Promise<(bridge: unknown, settings: string) => Runtime> {
  const context = newContext()
  const linked = new Map<string, SourceTextModule>()
  for (const { name, text } of modules) linked.set(name, new SourceTextModule(text, { context, identifier: name }))
  const module = linked.get(entry)
  if (module === undefined) throw new Error(`there is no module ${entry}`)
  await module.link((specifier, from) => {
    const { imports } = modules.find(({ name }) => name === from.identifier) ?? {}
    const found = linked.get(imports?.[specifier] ?? '')
    if (found === undefined) throw new Error(`${from.identifier} imports ${specifier}, which is not there`)
    return found
  })
  await module.evaluate()
  const { openRuntime } = module.namespace as { openRuntime: (bridge: unknown, settings: string) => Runtime }
  return openRuntime
}

/** Copies the function's changes into the argument; its own functions stay. */
function replace(arg: unknown, after: unknown): void {
  if (typeof arg !== 'object' || arg === null || Array.isArray(arg) !== Array.isArray(after)) return
  if (Array.isArray(arg)) arg.length = 0
  if (typeof after !== 'object' || after === null || stringify(arg) === stringify(after)) return
  for (const key of Object.keys(arg)) {
    if (typeof Reflect.get(arg, key) !== 'function') Reflect.deleteProperty(arg, key)
  }
  for (const [key, value] of Object.entries(after)) {
    Object.defineProperty(arg, key, { value, writable: true, enumerable: true, configurable: true })
  }
}

/** A thread has none of the limits of its process, so only our own is ever started. */
function dropWorkers(): void {
  const drop: unknown = Reflect.get(process.permission ?? {}, 'drop')
  if (typeof drop === 'function') drop.call(process.permission, 'worker')
}

/**
 * Calls another thread and waits for its response. Without one in time the thread counts as lost; the gateway's own
 * limit on the call ends the process soon after.
 */
function httpThread({ httpProgram: program, proxyVariables }: RealmOptions): (request: string, ends: number) => string {
  const signal = new Int32Array(new SharedArrayBuffer(4))
  const { port1, port2 } = new MessageChannel()
  const url = new URL(`data:text/javascript;base64,${Buffer.from(program).toString('base64')}`)
  const workerData = { port: port2, signal, gateway: process.ppid, proxyVariables }
  new Worker(url, { workerData, transferList: [port2] }).unref()
  port1.unref()
  return (request, ends) => {
    Atomics.store(signal, 0, 0)
    port1.postMessage({ request, ends })
    Atomics.wait(signal, 0, 0, Math.max(0, ends - Date.now()) + 1000)
    const answer = receiveMessageOnPort(port1)
    return answer === undefined ? stringify({ failure: 'timeout', message: 'no answer in time' }) : answer.message
  }
}
