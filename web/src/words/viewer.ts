/** The texts of an image that is shown full-size; they load with it. */

import { useStore } from "@threadkeep/react";

import { language, type Language } from "./language";

const en = {
  image: (name: string) => `Image: ${name}`,
  imageFailed: "Couldn’t load this image.",
  previousImage: "Previous image",
  nextImage: "Next image",
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  zoomFit: "Fit to window",
};

export type ViewerWords = typeof en;

const zh: ViewerWords = {
  image: (name: string) => `图片：${name}`,
  imageFailed: "图片加载失败",
  previousImage: "上一张",
  nextImage: "下一张",
  zoomIn: "放大",
  zoomOut: "缩小",
  zoomFit: "适应窗口",
};

export const viewerWords: Record<Language, ViewerWords> = { en, zh };

export function useViewerWords(): ViewerWords {
  return viewerWords[useStore(language)];
}
