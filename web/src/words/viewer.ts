/** The texts of an image that is shown full-size; they load with it. */

import { wordsHook } from "./language";

const en = {
  image: (name: string) => `Image: ${name}`,
  imageFailed: "Couldn’t load this image.",
  previousImage: "Previous image",
  nextImage: "Next image",
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  zoomFit: "Fit to window",
};

const zh: typeof en = {
  image: (name: string) => `图片：${name}`,
  imageFailed: "图片加载失败。",
  previousImage: "上一张",
  nextImage: "下一张",
  zoomIn: "放大",
  zoomOut: "缩小",
  zoomFit: "适应窗口",
};

export const viewerWords = { en, zh };
export const useViewerWords = wordsHook(viewerWords);
