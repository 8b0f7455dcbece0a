import type { JsonValue } from '#kernel/json.ts'
import type { LogLevel } from '#kernel/logger.ts'
import type { JavaScriptCode } from './javascript-source.ts'

/**
 * For scripts with their own objects instead of those of Node.js: the modules of a runtime, each with the modules
 * of its imports. The module `entry` exports `openRuntime`.
 */
export interface PluginRealm {
  readonly modules: readonly {
    readonly name: string
    readonly text: string
    readonly imports: Readonly<Record<string, string>>
  }[]
  readonly entry: string
  /** How the runtime creates the arguments of each function. */
  readonly signatures: object
}

/** One line of JSON each, over a socket between the gateway and the process that runs a plug-in. */
export type HostMessage =
  | {
      readonly kind: 'start'
      readonly code: JavaScriptCode
      /** The path of the code: imports are resolved against it, and stack traces name it. */
      readonly url: string
      /** The functions the gateway may call. */
      readonly functions: readonly string[]
      /** Global values for the code, besides `state`. */
      readonly globals: Readonly<Record<string, JsonValue>>
      readonly realm?: {
        readonly code: PluginRealm
        /** The texts of realm-process.ts and http-thread.ts. */
        readonly program: string
        readonly httpProgram: string
        /** For that thread only: scripts can't read them. */
        readonly proxyVariables: Readonly<Record<string, string>>
        readonly timeoutMillis: number
      }
    }
  | {
      readonly kind: 'call'
      readonly id: number
      readonly function: string
      readonly args: readonly JsonValue[]
      /** Which argument gets the functions `log` and `audit`. */
      readonly request: number | undefined
      /** Whether the changed arguments are returned. */
      readonly returnArguments: boolean
    }

export interface ThrownError {
  readonly message: string
  readonly stack?: string
  /** The error's own `code` or `status`, if it is a text. */
  readonly code?: string
}

/** Messages of the process. It is as untrusted as the plug-in, so the gateway checks each of them. */
export type PluginMessage =
  | { readonly kind: 'ready'; readonly functions: readonly string[] }
  | { readonly kind: 'refused'; readonly error: ThrownError }
  | { readonly kind: 'answer'; readonly id: number; readonly value?: JsonValue; readonly args?: readonly JsonValue[] }
  | { readonly kind: 'threw'; readonly id: number; readonly error: ThrownError }
  | { readonly kind: 'audit'; readonly id: number; readonly entry: JsonValue }
  | {
      readonly kind: 'log'
      readonly id?: number
      readonly level: LogLevel
      readonly message: string
      readonly fields?: JsonValue
    }

/**
 * One line of JSON each, over a second socket: while its script waits, the process asks the gateway for something it has.
 * One question at a time; `id` is the call that asks.
 */
export interface ServiceQuestion {
  readonly id: number
  readonly request: JsonValue
}

export type ServiceAnswer =
  | { readonly value: JsonValue }
  | {
      /** `unsupported`: no script of this kind may do it. */
      readonly failure: 'unreachable' | 'refused' | 'unsupported'
      readonly message: string
    }

/** A longer result is rejected, and a longer line ends the process. */
export const maxMessageLength = 16 * 1024 * 1024

/** The longest text of a log line or an error; the rest is left out. */
export const maxTextLength = 8192
