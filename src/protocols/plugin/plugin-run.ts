import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import type { Duplex, Readable } from 'node:stream'
import { parseBoundedJson } from '#kernel/bounded-json.ts'
import { asGatewayError, type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { proxyVariables } from '#protocols/http/outgoing-proxy.ts'
import {
  type HostMessage,
  maxMessageLength,
  maxTextLength,
  type PluginMessage,
  type PluginRealm,
  type ServiceAnswer,
  type ServiceQuestion,
  type ThrownError,
} from '#protocols/plugin/plugin-messages.ts'
import type { JavaScriptCode } from './javascript-source.ts'

export interface PluginOptions {
  /** For the log: `target "crm"`. */
  readonly name: string
  readonly code: JavaScriptCode
  readonly url: string
  /** The plug-in may read files below these folders, and no others. */
  readonly folders: readonly string[]
  readonly functions: readonly string[]
  readonly globals: Readonly<Record<string, JsonValue>>
  /** If given, the code runs in separate realms, without anything of Node.js. */
  readonly realm?: PluginRealm
  readonly timeoutMillis: number
  /** How long loading the code may take; by default at least ten seconds. */
  readonly loadMillis?: number
  readonly memoryMegabytes: number
  readonly log: Logger
  /** Answers what a script in a realm asks for outside of calls that answer themselves. */
  serve?(request: JsonValue): Promise<JsonValue>
}

export interface PluginCall {
  readonly function: string
  readonly args: readonly JsonValue[]
  /** Which argument gets `log` and `audit`. */
  readonly request?: number
  readonly returnArguments?: boolean
  readonly log?: Logger
  /** Called in order, and before the call settles, even for a call that fails. */
  onAudit?(entry: JsonValue): void
  /** Answers what the script asks for during this call. */
  serve?(request: JsonValue): Promise<JsonValue>
}

export interface PluginAnswer {
  readonly value: JsonValue | undefined
  /** As the function changed them, if they were requested. */
  readonly args: readonly JsonValue[]
}

interface Pending {
  readonly call: PluginCall
  readonly timer: NodeJS.Timeout
  /** How many characters its audit entries have so far. */
  audited: number
  resolve(answer: PluginAnswer): void
  reject(error: GatewayError): void
}

const minLoadMillis = 10_000
/** How many log lines are accepted from one call to the next. */
const maxLogLines = 1000
/** How often a script may ask the gateway for something, from one call to the next. */
const maxQuestions = 1000

const levels: ReadonlySet<string> = new Set(['debug', 'info', 'warn', 'error'])

const programs = new Map<string, string>()

/** The text of a program, ready to be passed to a process. What a TypeScript file imports of ours is part of it, as in a bundle. */
export function programText({ href, pathname }: URL): string {
  const held = programs.get(href)
  if (held !== undefined) return held
  const source = readFileSync(new URL(href), 'utf8')
  const text = pathname.endsWith('.ts') ? withImports(stripTypeScriptTypes(source)) : source
  programs.set(href, text)
  return text
}

const withImports = (text: string): string =>
  text.replace(/(?<=\bfrom )'#protocols\/([\w/-]+\.ts)'/g, (_, path: string) => {
    const imported = programText(new URL(`../${path}`, import.meta.url))
    return `'data:text/javascript;base64,${Buffer.from(imported).toString('base64')}'`
  })

function realmOf({ realm, timeoutMillis }: PluginOptions): Partial<Extract<HostMessage, { kind: 'start' }>> {
  if (realm === undefined) return {}
  const program = programText(new URL('./realm-process.ts', import.meta.url))
  return {
    realm: {
      code: realm,
      program,
      httpProgram: programText(new URL('./http-thread.ts', import.meta.url)),
      proxyVariables: Object.fromEntries(proxyVariables.map((name) => [name, process.env[name] ?? ''])),
      timeoutMillis,
    },
  }
}

/** Realms need separate modules and a thread that waits for HTTP; code from strings is disabled there. */
const realmFlags = [
  '--experimental-vm-modules',
  '--allow-worker',
  '--disable-warning=SecurityWarning',
  '--disallow-code-generation-from-strings',
]

/** One life of a plug-in's process: it starts once, and never again after its end. */
export class PluginRun {
  readonly #options: PluginOptions
  readonly #child: ChildProcess
  readonly #socket: Duplex
  readonly #pending = new Map<number, Pending>()
  readonly #exited: Promise<void>
  readonly #start = Promise.withResolvers<ReadonlySet<string>>()
  #lastId = 0
  #logLines = 0
  #questions = 0
  #lastWords = ''
  #ended = false

  constructor(options: PluginOptions) {
    this.#options = options
    this.#child = spawnProcess(options)
    this.#socket = this.#child.stdio[3] as Duplex
    this.#socket.on('error', () => this.kill((name) => died(options.name, name, 'its socket broke')))
    readLines(
      this.#socket as Readable,
      maxMessageLength,
      (line) => this.#receive(line),
      () => this.kill((name) => died(options.name, name, 'it sent a message that is too long')),
    )
    if (options.realm !== undefined) this.#answerQuestions(this.#child.stdio[4] as Duplex)
    this.#child.stderr?.on('data', (chunk) => {
      this.#lastWords = (this.#lastWords + String(chunk)).slice(-2000)
    })
    this.#exited = new Promise((resolve) => {
      this.#child.on('error', (error) => {
        this.kill((name) => died(options.name, name, error.message))
        resolve()
      })
      this.#child.on('exit', (code, signal) => {
        const reason = `exit code ${code ?? signal}. ${this.#lastWords}`
        this.kill((name) => died(options.name, name, reason))
        resolve()
      })
    })
    const { code, url, functions, globals } = options
    this.#send({ kind: 'start', code, url, functions, globals, ...realmOf(options) })
  }

  get ended(): boolean {
    return this.#ended
  }

  /** The functions of the code; rejects if it could not be loaded. */
  async loaded(): Promise<ReadonlySet<string>> {
    const { timeoutMillis, loadMillis = Math.max(minLoadMillis, timeoutMillis) } = this.#options
    const timer = setTimeout(() => this.kill(() => overrun(this.#options.name, 'loading', loadMillis)), loadMillis)
    try {
      return await this.#start.promise
    } finally {
      clearTimeout(timer)
    }
  }

  /** The function must be one of `loaded()`. */
  call(call: PluginCall, timeoutMillis = this.#options.timeoutMillis): Promise<PluginAnswer> {
    const { name } = this.#options
    if (this.#ended) return Promise.reject(interrupted(name, call.function, 'the plug-in has ended'))
    const id = ++this.#lastId
    this.#logLines = 0
    this.#questions = 0
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id)
        reject(overrun(name, call.function, timeoutMillis))
        this.kill((other) => interrupted(name, other, `${call.function} overran its time`))
      }, timeoutMillis)
      this.#pending.set(id, { call, timer, audited: 0, resolve, reject })
      const { request, returnArguments = false } = call
      this.#send({ kind: 'call', id, function: call.function, args: call.args, request, returnArguments })
    })
  }

  /** Ends the process at once; running calls reject with the `reason` for their function's name. */
  kill(reason: (functionName: string) => GatewayError): void {
    if (this.#ended) return
    this.#ended = true
    this.#child.kill('SIGKILL')
    this.#socket.destroy()
    this.#start.promise.catch(() => {})
    this.#start.reject(reason('loading'))
    for (const { call, timer, reject } of this.#pending.values()) {
      clearTimeout(timer)
      reject(reason(call.function))
    }
    this.#pending.clear()
  }

  /** Resolves when the process is gone. */
  async close(): Promise<void> {
    this.kill((name) => new GatewayError('SHUTTING_DOWN', `${this.#options.name}: closed during ${name}`))
    await this.#exited
  }

  #send(message: HostMessage): void {
    this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  /** The process waits for the answer; the time of its call bounds the wait. */
  #answerQuestions(socket: Duplex): void {
    socket.on('error', () => {})
    const answer = async (line: string): Promise<void> => {
      const text = JSON.stringify(await this.#answer(line))
      const isShort = text.length < maxMessageLength
      const sent = isShort ? text : JSON.stringify(refused('refused', 'the answer is too long'))
      if (!this.#ended) socket.write(`${sent}\n`)
    }
    readLines(
      socket,
      maxMessageLength,
      (line) => void answer(line),
      () => this.kill((name) => died(this.#options.name, name, 'it sent a message that is too long')),
    )
  }

  /** Never rejects. */
  async #answer(line: string): Promise<ServiceAnswer> {
    try {
      const { id, request } = parsed(line) as unknown as ServiceQuestion
      const serve = this.#pending.get(id)?.call.serve ?? this.#options.serve
      if (serve === undefined) return refused('unsupported', 'not available to scripts of this kind')
      if (++this.#questions > maxQuestions) return refused('refused', `more than ${maxQuestions} questions in one call`)
      return { value: await serve(request) }
    } catch (error) {
      const { code, message } = asGatewayError(error)
      if (code === 'NOT_SUPPORTED') return refused('unsupported', message)
      return refused(code === 'TARGET_UNREACHABLE' ? 'unreachable' : 'refused', message)
    }
  }

  /** No message of the process may throw here, where nothing would catch it. */
  #receive(line: string): void {
    if (this.#ended) return
    try {
      this.#handle(parsed(line) as unknown as PluginMessage, line.length)
    } catch (error) {
      const reason = `it sent what is not a message: ${error instanceof Error ? error.message : error}`
      this.kill((name) => died(this.#options.name, name, reason))
    }
  }

  #handle(message: PluginMessage, length: number): void {
    const pending = 'id' in message && typeof message.id === 'number' ? this.#pending.get(message.id) : undefined
    switch (message.kind) {
      case 'ready':
        this.#start.resolve(new Set(message.functions))
        break
      case 'refused': {
        const failure = thrownFailure(this.#options.name, 'loading', message.error)
        this.kill(() => failure)
        break
      }
      case 'log':
        this.#log(message, pending?.call.log ?? this.#options.log)
        break
      case 'audit':
        if (pending !== undefined) this.#audit(message.id, message.entry, length, pending)
        break
      case 'answer':
        this.#settle(message.id)
        pending?.resolve({ value: message.value, args: Array.isArray(message.args) ? message.args : [] })
        break
      case 'threw': {
        const failure = thrownFailure(this.#options.name, pending?.call.function ?? '', message.error)
        this.#settle(message.id)
        pending?.reject(failure)
        break
      }
    }
  }

  /** An entry that cannot be recorded fails its call and no other. */
  #audit(id: number, entry: JsonValue, length: number, pending: Pending): void {
    try {
      pending.audited += length
      if (pending.audited > maxMessageLength) {
        const { call } = pending
        throw new GatewayError('TARGET_FAILED', `${this.#options.name}: ${call.function} has too many audit entries`)
      }
      pending.call.onAudit?.(entry)
    } catch (error) {
      this.#settle(id)
      pending.reject(asGatewayError(error))
    }
  }

  #settle(id: number): void {
    clearTimeout(this.#pending.get(id)?.timer)
    this.#pending.delete(id)
  }

  #log({ level, message, fields }: Extract<PluginMessage, { kind: 'log' }>, log: Logger): void {
    if (++this.#logLines > maxLogLines) {
      if (this.#logLines === maxLogLines + 1) log.warn('plug-in logs too much; the rest is dropped')
      return
    }
    log[levels.has(level) ? level : 'info']('plug-in', {
      plugin: this.#options.name,
      text: String(message).slice(0, maxTextLength),
      ...(fields && JSON.stringify(fields).length <= maxTextLength ? { fields } : {}),
    })
  }
}

/** To build a long message that nests deeply, or has an object of very many members, would take seconds. */
const bounds = { depth: 1000, members: 100_000, elements: maxMessageLength, values: maxMessageLength }
const maxUnboundedLength = 64 * 1024

const parsed = (line: string): JsonValue =>
  line.length <= maxUnboundedLength ? JSON.parse(line) : parseBoundedJson(Buffer.from(line), bounds).value

const refused = (failure: 'refused' | 'unreachable' | 'unsupported', message: string): ServiceAnswer => ({
  failure,
  message,
})

/** The part of the gateway's environment that the process gets: the certificates to trust, and the time zone. */
const passedOn = ['NODE_EXTRA_CA_CERTS', 'TZ']

/**
 * The process gets none of the gateway's secrets, files or descriptors, and may start no other. SQLite is left out, since
 * an attached database could be any file.
 */
function spawnProcess(options: PluginOptions): ChildProcess {
  const env = Object.fromEntries(passedOn.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
  const child = spawn(
    process.execPath,
    [
      `--max-old-space-size=${options.memoryMegabytes}`,
      '--disable-warning=ExperimentalWarning',
      '--permission',
      '--no-experimental-sqlite',
      '--disable-sigusr1',
      ...options.folders.map((folder) => `--allow-fs-read=${folder}`),
      ...(options.realm === undefined ? [] : realmFlags),
      '--input-type=module',
      '-',
    ],
    {
      env,
      stdio: ['pipe', 'ignore', 'pipe', 'pipe', ...(options.realm === undefined ? [] : ['pipe' as const])],
      cwd: tmpdir(),
    },
  )
  child.stdin?.on('error', () => {})
  child.stdin?.end(programText(new URL('./plugin-process.js', import.meta.url)))
  watchMemory(child, options.memoryMegabytes, options.log)
  return child
}

/** What a Node.js process needs besides the JavaScript heap that its own limit bounds. */
const baseMegabytes = 128
const everyMillis = 200

/**
 * Ends a process that uses far more memory than its heap limit allows, as buffers do. Only on Linux, which reports
 * it; elsewhere only the heap limit applies.
 */
function watchMemory(child: ChildProcess, heapMegabytes: number, log: Logger): void {
  const limit = (heapMegabytes + baseMegabytes) * 1024
  if (process.platform !== 'linux' || child.pid === undefined) return
  const status = `/proc/${child.pid}/status`
  const timer = setInterval(async () => {
    const kilobytes = await readFile(status, 'utf8').then(
      (text) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0),
      () => 0,
    )
    if (kilobytes <= limit || child.exitCode !== null) return
    log.error('plug-in holds too much memory and is stopped', { kilobytes, limit })
    child.kill('SIGKILL')
  }, everyMillis)
  timer.unref()
  child.once('exit', () => clearInterval(timer))
}

/** Calls `onLine` for each line of the stream, and `onTooLong` once, for good, after a line that is too long. */
function readLines(stream: Readable, limit: number, onLine: (line: string) => void, onTooLong: () => void): void {
  let parts: string[] = []
  let length = 0
  let over = false
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    if (over) return
    let from = 0
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      parts.push(chunk.slice(from, end))
      const line = parts.join('')
      parts = []
      length = 0
      from = end + 1
      onLine(line)
    }
    parts.push(chunk.slice(from))
    length += chunk.length - from
    if (length > limit) {
      over = true
      parts = []
      onTooLong()
    }
  })
}

/** The values of `code` or `status` with which a plug-in classifies an error. */
const codes: ReadonlyMap<string, ErrorCode> = new Map([
  ['unreachable', 'TARGET_UNREACHABLE'],
  ['conflict', 'CONFLICT'],
  ['badRequest', 'BAD_REQUEST'],
])

/** Its message may contain anything, so it is only logged. */
function thrownFailure(plugin: string, name: string, error: ThrownError): GatewayError {
  const code = codes.get(error.code ?? '') ?? 'TARGET_FAILED'
  const retry = code === 'TARGET_UNREACHABLE' ? { retryAfter: 5 } : {}
  const message = String(error.message).slice(0, maxTextLength)
  return new GatewayError(code, `${plugin}: ${name}: ${message}`, {
    cause: String(error.stack ?? message).slice(0, maxTextLength),
    ...retry,
  })
}

const overrun = (plugin: string, name: string, millis: number): GatewayError =>
  new GatewayError('TARGET_TIMEOUT', `${plugin}: ${name} took longer than ${millis} ms, so the plug-in was stopped`, {
    retryAfter: 5,
  })

/** For calls that ended because another one had to be stopped: worth a retry. */
export const interrupted = (plugin: string, name: string, reason: string): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', `${plugin}: ${name} was interrupted: ${reason}`, { retryAfter: 1 })

const died = (plugin: string, name: string, reason: string): GatewayError =>
  new GatewayError('TARGET_FAILED', `${plugin}: the plug-in's process ended during ${name}: ${reason}`, {
    retryAfter: 5,
  })
