import { decodeText, encodeText } from '#openunison/scripts/java/bytes.ts'
import { HashMap } from '#openunison/scripts/java/hash-map.ts'
import { type Bridge, connectBridge } from '#openunison/scripts/java/host-bridge.ts'
import { ConfigManager, setRun, WorkflowTask } from '#openunison/scripts/java/host-objects.ts'
import { JavaException } from '#openunison/scripts/java/java-exception.ts'
import { javaTypes, namelessTypes } from '#openunison/scripts/java/java-types.ts'
import { scriptGlobals } from './java-global.ts'
import { javaArgument, plainData, type ScriptParameter, SharedObjects } from './script-value.ts'

interface ScriptSettings {
  /** The arguments of each function; one that is not listed gets the gateway's own arguments unchanged. */
  readonly signatures: Readonly<Record<string, readonly ScriptParameter[]>>
  readonly name: string
  readonly hasTask: boolean
}

type Outcome = { readonly value?: unknown; readonly args?: unknown[] } | { readonly error: ThrownText }

interface ThrownText {
  readonly message: string
  readonly stack?: string
  readonly code?: string
}

const maxTextLength = 8192

/** The only object of this realm that the process has. Only texts pass. */
export function openRuntime(bridge: Bridge, settingsText: string) {
  connectBridge(bridge)
  provideTextDecoder()
  const settings = JSON.parse(settingsText) as ScriptSettings
  const state = new HashMap({ name: settings.name })
  state.put('cfgMgr', new ConfigManager())
  const globals = { ...scriptGlobals(), state, ...(settings.hasTask ? { task: new WorkflowTask() } : {}) }
  freezeRealm([...javaTypes.values(), ...namelessTypes.values(), ...Object.values(globals)])

  return {
    /** Adds the globals to a script's new global object. */
    furnish(global: object): void {
      for (const [name, value] of Object.entries(globals)) {
        Object.defineProperty(global, name, { value, writable: true, enumerable: false, configurable: true })
      }
    },
    /** Loads the script by `load`, which returns its functions, and calls one of them. Never throws. */
    call(load: () => Readonly<Record<string, unknown>>, name: string, argsText: string): string {
      return JSON.stringify(outcomeOf(load, name, JSON.parse(argsText) as unknown[], settings))
    },
    /** The names of the functions; returns an error instead of throwing it. */
    load(load: () => Readonly<Record<string, unknown>>): string {
      try {
        const found = load()
        return JSON.stringify({ value: Object.keys(found).filter((name) => typeof found[name] === 'function') })
      } catch (thrown) {
        return JSON.stringify({ error: describe(thrown) })
      }
    },
  }
}

function outcomeOf(
  load: () => Readonly<Record<string, unknown>>,
  name: string,
  args: unknown[],
  { signatures }: ScriptSettings,
): Outcome {
  try {
    const called = load()[name]
    if (typeof called !== 'function') throw new JavaException(`there is no function ${name}`)
    const parameters = signatures[name] ?? args.map((_, from): ScriptParameter => ({ kind: 'value', from }))
    const shared = new SharedObjects(args)
    const given = parameters.map((parameter) => javaArgument(parameter, args, shared))
    const returned: unknown = called(...given)
    const value = shared.result === undefined ? plainData(returned) : shared.result.result()
    return { value, args: argumentsAfter(parameters, given, args) }
  } catch (thrown) {
    return { error: describe(thrown) }
  } finally {
    setRun(undefined)
  }
}

/** The gateway's arguments after the call: the function may have changed some of them. */
function argumentsAfter(parameters: readonly ScriptParameter[], given: readonly unknown[], args: unknown[]): unknown[] {
  const after = [...args]
  for (const [i, { kind, from }] of parameters.entries()) {
    if (from !== undefined && changeable.has(kind)) after[from] = plainData(given[i])
  }
  return after
}

const changeable: ReadonlySet<ScriptParameter['kind']> = new Set(['user', 'taskRequest', 'newUser', 'list', 'map'])

function describe(thrown: unknown): ThrownText {
  try {
    if (typeof thrown !== 'object' || thrown === null)
      return { message: `threw ${String(thrown)}`.slice(0, maxTextLength) }
    const { message, stack, code, status } = thrown as Record<string, unknown>
    const word = code ?? status
    const text =
      thrown instanceof JavaException ? thrown.toString() : typeof message === 'string' ? message : 'threw an object'
    return {
      message: text.slice(0, maxTextLength),
      ...(typeof stack === 'string' ? { stack: ownFrames(stack) } : {}),
      ...(typeof word === 'string' ? { code: word.slice(0, maxTextLength) } : {}),
    }
  } catch {
    return { message: 'threw something that cannot be described' }
  }
}

/** The stack down to the call of the script. */
const ownFrames = (stack: string): string =>
  stack
    .split(/\n.*(?:outcomeOf|realm-process|data:)/, 1)
    .join('')
    .slice(0, maxTextLength)

/** The part of the web's TextDecoder that the gateway's own modules use, for a realm without one. */
class StrictDecoder {
  /** Throws if the bytes are not UTF-8. */
  decode(bytes: Uint8Array): string {
    const text = decodeText(bytes)
    const again = encodeText(text)
    const isSame = again.length === bytes.length && again.every((byte, i) => byte === bytes[i])
    if (!isSame) throw new TypeError('not UTF-8')
    return text
  }
}

function provideTextDecoder(): void {
  if ('TextDecoder' in globalThis) return
  Object.defineProperty(globalThis, 'TextDecoder', { value: StrictDecoder })
}

/**
 * Freezes the realm's own objects, and everything reachable from the given ones, so that a script changes nothing
 * for the next one. Instances keep their state, which is private.
 */
function freezeRealm(roots: readonly unknown[]): void {
  letErrorsBeNamed()
  const own = Object.getOwnPropertyNames(globalThis).map((name) => Reflect.get(globalThis, name))
  const hidden = [function* () {}, async () => {}, async function* () {}, [][Symbol.iterator](), new Map().entries()]
  const queue: unknown[] = [...own, ...hidden, ...roots]
  const seen = new Set<unknown>([globalThis])
  while (queue.length > 0) {
    const item = queue.pop()
    if ((typeof item !== 'object' && typeof item !== 'function') || item === null || seen.has(item)) continue
    seen.add(item)
    queue.push(Object.getPrototypeOf(item))
    for (const name of Reflect.ownKeys(item)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(item, name) ?? {}
      queue.push(value, get, set)
    }
    freeze(item)
  }
}

/** With a frozen `name`, scripts could not assign it on an error either; a setter allows it. */
function letErrorsBeNamed(): void {
  Object.defineProperty(Error.prototype, 'name', {
    get: () => 'Error',
    set(this: Error, value: unknown) {
      Object.defineProperty(this, 'name', { value, writable: true, configurable: true })
    },
  })
}

/** Collections can't be frozen, being proxies; their handlers protect them. */
function freeze(item: object): void {
  try {
    Object.freeze(item)
  } catch {}
}
