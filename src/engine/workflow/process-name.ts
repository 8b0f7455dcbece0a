import { hostname } from 'node:os'
import process from 'node:process'
import { newId } from '#kernel/ids.ts'

/** Identifies a worker, for people too: host, process and a unique part. */
export const processName = (): string => `${hostname()}:${process.pid}:${newId().slice(-8)}`
