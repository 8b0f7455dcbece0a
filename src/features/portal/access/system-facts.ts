/** The state of the installation, for administrators. What can't be read is absent. */
export interface SystemFacts {
  /** The process that answers. */
  readonly replica: ReplicaFacts
  /** All processes that were seen lately, this one included. Absent if they can't be read. */
  readonly replicas?: readonly ReplicaFacts[]
  readonly node: string
  readonly queues?: QueueFacts
  /** Of this process. */
  readonly listeners: readonly ListenerFacts[]
  readonly database: { readonly kind: 'sqlite' | 'postgres'; readonly bytes?: number }
  /** The file system of the data folder of this process. */
  readonly disk?: { readonly freeBytes: number; readonly totalBytes: number }
}

export interface ReplicaFacts {
  readonly name: string
  readonly version: string
  readonly started: Date
  readonly seen: Date
}

/** Work that waits, in the whole installation. */
interface QueueFacts {
  readonly runs: {
    readonly ready: number
    readonly running: number
    readonly waiting: number
    readonly incident: number
    /** How long the run that is due longest has been due. */
    readonly oldestReadyMillis?: number
  }
  readonly approvals: { readonly open: number }
  readonly mails: {
    readonly queued: number
    readonly failed: number
    /** Sent without an answer from the mail server. */
    readonly unknown: number
    readonly oldestMillis?: number
  }
}

export interface ListenerFacts {
  readonly name: 'public' | 'metrics' | 'webhook'
  readonly address: string
  /** Absent without TLS. */
  readonly certificate?: CertificateFacts | undefined
}

export interface CertificateFacts {
  readonly subject: string
  readonly issuer: string
  /** Host names and addresses. */
  readonly names: readonly string[]
  readonly validFrom: Date
  readonly validTo: Date
  /** Why a newer certificate is not served, or why clients reject this one. */
  readonly problem?: string
}
