import { onlineManager } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'

const listen = (listener: () => void): (() => void) => onlineManager.subscribe(listener)

/** Whether the browser has a connection. Without one, queries wait, and continue when it returns. */
export const useOnline = (): boolean => useSyncExternalStore(listen, () => onlineManager.isOnline())
